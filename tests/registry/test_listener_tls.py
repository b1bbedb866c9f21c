"""TLS of the registry's listener: the types of its stores, and their renewal."""

import ssl
from pathlib import Path

import pytest
from tests.tls_certificates import PASSWORD, castle_authority, has_keytool

from barnabas.net.http_tls import CHECK_INTERVAL_S, HttpTls
from barnabas.net.listener_config import TlsConfigError
from barnabas.registry.listener_settings import RegistryListener
from barnabas.security.tls.store_changes import require_handshake


def listener_tls(now_s: list[float] | None = None, **properties: str) -> HttpTls:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    config = RegistryListener.from_properties(named).tls
    assert config is not None
    times = now_s or [0.0]
    return HttpTls(config, "the schema registry", lambda: times[0])


@pytest.mark.parametrize("kind", ["PEM", "PKCS12", "JKS"])
def test_stores_have_the_types_of_kafka(tmp_path: Path, kind: str) -> None:
    issued, authority = castle_authority().issue("CN=registry"), castle_authority()
    if kind == "JKS" and not has_keytool():
        pytest.skip("needs keytool")
    passwords = {"ssl_keystore_password": PASSWORD, "ssl_truststore_password": PASSWORD}
    match kind:
        case "PEM":
            paths, passwords = (issued.write_pem(tmp_path, "k"), authority.write_pem(tmp_path)), {}
        case "PKCS12":
            paths = issued.write_pkcs12(tmp_path, "k"), authority.write_pkcs12(tmp_path)
        case _:
            paths = issued.write_jks(tmp_path, "k"), authority.write_jks(tmp_path)
    tls = listener_tls(
        ssl_keystore_type=kind,
        ssl_keystore_location=paths[0],
        ssl_truststore_type=kind,
        ssl_truststore_location=paths[1],
        **passwords,
    )
    client = ssl.create_default_context(cadata=authority.pem)
    client.check_hostname = False
    require_handshake(client, tls.server, "a client with the registry")


def test_replaced_files_are_read_again_and_damaged_ones_are_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]
    path = castle_authority().issue("CN=registry").write_pem(tmp_path, "k")
    tls = listener_tls(now_s, ssl_keystore_type="PEM", ssl_keystore_location=path)
    first = tls.server
    castle_authority().issue("CN=registry").write_pem(tmp_path, "k")
    assert tls.server is first
    now_s[0] += CHECK_INTERVAL_S
    second = tls.server
    assert second is not first
    Path(path).write_text("damaged")
    now_s[0] += CHECK_INTERVAL_S
    assert tls.server is second
    now_s[0] += CHECK_INTERVAL_S
    assert tls.server is second
    assert caplog.text.count("the schema registry keeps its current certificates") == 1


def test_https_without_a_key_is_an_error() -> None:
    with pytest.raises(TlsConfigError, match="needs a key and a certificate"):
        listener_tls(listeners="https://localhost:8081")
