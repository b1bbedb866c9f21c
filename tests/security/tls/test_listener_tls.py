"""TLS of a listener: handshakes in memory, client certificates, and reloads of its stores."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.security.tls.listener_settings import listener_tls, pem_settings, typed
from tests.tls_certificates import Authority, Issued, castle_authority

from barnabas.config import SecurityProtocol
from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls import TlsSettings
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal
from barnabas.security.tls.listener_tls import ListenerTls
from barnabas.security.tls.principal_mapping import NoMatchingRuleError


@pytest.fixture(scope="module")
def server() -> Issued:
    return castle_authority().issue("CN=server")


def client_context(issued: Issued | None = None) -> ssl.SSLContext:
    return TlsSettings(
        ca_pem=castle_authority().pem,
        certificate_pem=issued.certificate_pem if issued else None,
        key_pem=issued.key_pem if issued else None,
    ).client_context()


def connect(tls: ListenerTls, client: ssl.SSLContext) -> ssl.SSLObject:
    """Makes a handshake. Returns the server's end."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    far = tls.server_context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in near, far:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert far.cipher() is not None
    return far


def subject_served(tls: ListenerTls) -> str:
    """Returns the common name of the certificate that clients get."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client_context().wrap_bio(to_client, to_server, server_hostname="localhost")
    far = tls.server_context.wrap_bio(to_server, to_client, server_side=True)
    for end in near, far, near:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    certificate = near.getpeercert()
    assert certificate is not None
    return dict(part[0] for part in certificate["subject"])["commonName"]


# Client certificates


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_a_client_without_a_certificate_is_anonymous(
    auth: str, server: Issued, tmp_path: Path
) -> None:
    tls = listener_tls(pem_settings(tmp_path, server) | {"ssl.client.auth": auth})
    assert tls.principal_of(connect(tls, client_context())) == ANONYMOUS


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_a_client_is_the_user_that_its_certificate_names(
    auth: str, server: Issued, tmp_path: Path
) -> None:
    issued = castle_authority().issue("CN=Alice,O=Castle", ())
    tls = listener_tls(pem_settings(tmp_path, server) | {"ssl.client.auth": auth})
    connected = connect(tls, client_context(issued))
    assert tls.principal_of(connected) == KafkaPrincipal("User", "CN=Alice,O=Castle")


def test_mapping_rules_give_the_name(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server) | {
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),O=Castle$/$1/L",
    }
    tls = listener_tls(settings)
    alice = castle_authority().issue("CN=Alice,O=Castle", ())
    assert tls.principal_of(connect(tls, client_context(alice))).name == "alice"
    other = castle_authority().issue("CN=Bob,O=Village", ())
    with pytest.raises(NoMatchingRuleError, match="CN=Bob,O=Village"):
        tls.principal_of(connect(tls, client_context(other)))


def test_a_required_certificate_must_be_there_and_trusted(server: Issued, tmp_path: Path) -> None:
    tls = listener_tls(pem_settings(tmp_path, server) | {"ssl.client.auth": "required"})
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE"):
        connect(tls, client_context())
    for issued in (Authority().issue("CN=alice"), castle_authority().issue("CN=alice", days=-1)):
        with pytest.raises(ssl.SSLCertVerificationError):
            connect(tls, client_context(issued))


def test_with_sasl_only_the_listeners_own_setting_asks_for_certificates(
    server: Issued, tmp_path: Path
) -> None:
    settings = pem_settings(tmp_path, server) | {"ssl.client.auth": "required"}
    tls = listener_tls(settings, SecurityProtocol.SASL_SSL)
    assert tls.server_context.verify_mode is ssl.CERT_NONE
    settings["listener.name.secure.ssl.client.auth"] = "required"
    tls = listener_tls(settings, SecurityProtocol.SASL_SSL)
    assert tls.server_context.verify_mode is ssl.CERT_REQUIRED
    issued = castle_authority().issue("CN=alice", ())
    assert tls.principal_of(connect(tls, client_context(issued))) == ANONYMOUS


# Errors and warnings at the start


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"ssl.cipher.suites": "TLS_CASTLE"}, "TLS_CASTLE is not the name of a cipher suite"),
        ({"ssl.enabled.protocols": "SSLv3"}, "SSLv3 is not one of"),
        ({"ssl.principal.mapping.rules": "CASTLE"}, "ssl.principal.mapping.rules: Invalid rule"),
        ({"ssl.keystore.location": "", "ssl.keystore.type": "JKS"}, "needs a key and a cert"),
    ],
)
def test_a_listener_that_cannot_work_is_an_error(
    settings: dict[str, str], problem: str, server: Issued, tmp_path: Path
) -> None:
    with pytest.raises(TlsConfigError, match=problem):
        listener_tls(pem_settings(tmp_path, server) | settings)


def test_a_key_of_another_certificate_is_an_error(server: Issued, tmp_path: Path) -> None:
    other = castle_authority().issue("CN=server")
    settings = pem_settings(tmp_path, server)
    Path(settings["ssl.keystore.location"]).write_text(other.key_pem + server.certificate_pem)
    with pytest.raises(TlsConfigError, match="private key does not belong to the certificate"):
        listener_tls(settings)


def test_a_node_that_does_not_trust_itself_does_not_start(tmp_path: Path) -> None:
    stranger = Authority().issue("CN=server")
    listener_tls(pem_settings(tmp_path, stranger))
    with pytest.raises(TlsConfigError, match="SECURE with itself cannot make a TLS handshake"):
        listener_tls(pem_settings(tmp_path, stranger), is_connected_to=True)


@pytest.mark.parametrize(
    ("days", "warning"),
    [
        (365, None),
        (29, "listener SECURE: the certificate of CN=server expires in 28 days, on 20"),
        (-1, "listener SECURE: the certificate of CN=server expired on 20"),
    ],
)
def test_a_certificate_that_expires_soon_is_a_warning(
    days: int, warning: str | None, tmp_path: Path
) -> None:
    tls = listener_tls(pem_settings(tmp_path, castle_authority().issue("CN=server", days=days)))
    warnings = tls.find_warnings(datetime.now(UTC) + timedelta(seconds=1))
    assert len(warnings) == (warning is not None)
    assert all(line.startswith(warning) for line in warnings if warning)


def test_suites_that_cannot_be_left_out_are_a_warning(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server)
    tls = listener_tls(settings | {"ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"})
    (warning,) = tls.find_warnings()
    assert "TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256 stay enabled" in warning


def test_certificates_that_any_authority_of_the_system_may_issue_are_a_warning(
    server: Issued, tmp_path: Path
) -> None:
    settings = pem_settings(tmp_path, server) | {"ssl.client.auth": "required"}
    assert listener_tls(settings).find_warnings() == []
    no_trust = {name: text for name, text in settings.items() if "truststore" not in name}
    (warning,) = listener_tls(no_trust).find_warnings()
    assert "every authority that this system trusts" in warning


def test_a_listener_of_other_nodes_needs_no_key(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server)
    trust = {name: text for name, text in settings.items() if "truststore" in name}
    config = ListenerConfig("SECURE", typed(trust))
    tls = ListenerTls(config, SecurityProtocol.SSL, is_served=False, is_connected_to=True)
    tls.apply(tls.load(typed(trust)))
    assert tls.client is not None
    assert tls.describe() == "a trust store, and no key store"


# Changes at run time


def test_a_replaced_file_is_a_change(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server)
    tls = listener_tls(settings, is_connected_to=True)
    values = typed(settings)
    assert not tls.needs_reload(values)
    renewed = castle_authority().issue("CN=server")
    renewed.write_pem(tmp_path, "server")
    os.utime(settings["ssl.keystore.location"], (1, 1))
    assert tls.needs_reload(values)
    connected = connect(tls, client_context())
    assert tls.client is not None
    before = tls.server_context, tls.client.context
    tls.apply(tls.load(values))
    assert not tls.needs_reload(values)
    assert tls.server_context is not before[0]
    assert tls.client.context is not before[1]
    connected.write(b"an existing connection goes on")


def load_changed(
    tmp_path: Path,
    before: Issued,
    after: Issued,
    settings: dict[str, str] | None = None,
    *,
    is_connected_to: bool = False,
) -> ListenerTls:
    tls = listener_tls(
        pem_settings(tmp_path, before) | (settings or {}), is_connected_to=is_connected_to
    )
    changed = pem_settings(tmp_path, after, "after") | (settings or {})
    tls.apply(tls.load(typed(changed)))
    return tls


def test_another_subject_needs_a_setting(server: Issued, tmp_path: Path) -> None:
    other = castle_authority().issue("CN=other")
    with pytest.raises(TlsConfigError, match="is for CN=other and was for CN=server"):
        load_changed(tmp_path, server, other)
    tls = load_changed(tmp_path, server, other, {"ssl.allow.dn.changes": "true"})
    assert subject_served(tls) == "other"


def test_fewer_alternative_names_need_a_setting(server: Issued, tmp_path: Path) -> None:
    fewer = castle_authority().issue("CN=server", ("localhost",))
    more = castle_authority().issue("CN=server", ("localhost", "127.0.0.1", "castle"))
    load_changed(tmp_path, server, more)
    with pytest.raises(TlsConfigError, match=r"lacks the alternative names 127\.0\.0\.1 of"):
        load_changed(tmp_path, server, fewer)
    load_changed(tmp_path, server, fewer, {"ssl.allow.san.changes": "true"})


def test_stores_cannot_be_added_or_removed(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server)
    tls = listener_tls(settings)
    without_key = {name: text for name, text in settings.items() if "keystore" not in name}
    with pytest.raises(TlsConfigError, match="cannot be added or removed at run time"):
        tls.load(typed(without_key))
    keys_only = {name: text for name, text in settings.items() if "truststore" not in name}
    without_trust = listener_tls(keys_only)
    with pytest.raises(TlsConfigError, match="a trust store cannot be added"):
        without_trust.load(typed(settings))


def test_between_nodes_old_and_new_certificates_must_trust_each_other(
    server: Issued, tmp_path: Path
) -> None:
    stranger = Authority().issue("CN=server")
    load_changed(tmp_path, server, stranger)
    with pytest.raises(TlsConfigError, match="the new and the current stores"):
        load_changed(tmp_path, server, stranger, is_connected_to=True)


def test_a_store_that_cannot_be_read_leaves_the_current_one(server: Issued, tmp_path: Path) -> None:
    settings = pem_settings(tmp_path, server)
    tls = listener_tls(settings)
    Path(settings["ssl.keystore.location"]).write_text("damaged")
    with pytest.raises(TlsConfigError, match="has no private key"):
        tls.load(typed(settings))
    assert subject_served(tls) == "server"
