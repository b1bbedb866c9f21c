"""The stores of a listener: the settings that name them, and errors that say what to do."""

from pathlib import Path

import pytest
from tests.security.tls.listener_settings import pem_settings, typed
from tests.tls_certificates import PASSWORD, castle_authority

from barnabas.net.listener_config import ListenerConfig, TlsConfigError
from barnabas.net.tls_stores import ListenerStores, load_stores


def load(settings: dict[str, str]) -> ListenerStores:
    return load_stores(ListenerConfig("SECURE", typed(settings)))


def test_stores_may_be_files_of_any_type(tmp_path: Path) -> None:
    authority = castle_authority()
    issued = authority.issue("CN=server")
    stores = [
        load(pem_settings(tmp_path, issued)),
        load(
            {
                "ssl.keystore.location": issued.write_pkcs12(tmp_path, "server"),
                "ssl.keystore.password": PASSWORD,
                "ssl.truststore.type": "PKCS12",
                "ssl.truststore.location": authority.write_pkcs12(tmp_path),
                "ssl.truststore.password": PASSWORD,
            }
        ),
        load(
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": issued.encrypted_key_pem,
                "ssl.keystore.certificate.chain": issued.certificate_pem,
                "ssl.key.password": PASSWORD,
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": authority.pem,
            }
        ),
    ]
    for store in stores:
        assert store.key is not None
        assert store.key.key_pem == issued.key_pem
        assert store.trusted == stores[0].trusted


def test_the_settings_of_the_listener_come_first(tmp_path: Path) -> None:
    own, shared = castle_authority().issue("CN=own"), castle_authority().issue("CN=shared")
    settings = pem_settings(tmp_path, shared)
    location = own.write_pem(tmp_path, "own")
    stores = load({**settings, "listener.name.secure.ssl.keystore.location": location})
    assert stores.key is not None
    assert stores.key.key_pem == own.key_pem


def test_without_settings_there_are_no_stores() -> None:
    stores = load({})
    assert (stores.key, stores.trusted) == (None, None)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"ssl.keystore.location": "/none.p12"},
            "ssl.keystore.location /none.p12: it cannot be read: No such file or directory",
        ),
        (
            {"ssl.keystore.location": "{p12}", "ssl.keystore.password": "hush"},
            "it has another password, or is damaged; check ssl.keystore.password and "
            "ssl.key.password",
        ),
        (
            {"listener.name.secure.ssl.keystore.location": "{pem}"},
            "listener.name.secure.ssl.keystore.location {pem}: it is a PEM file, and its type is "
            "set to JKS; set ssl.keystore.type to PEM",
        ),
        (
            {"ssl.keystore.location": "{p12}", "ssl.keystore.type": "PEM"},
            "it is a PKCS12 file, and its type is set to PEM; set ssl.keystore.type to PKCS12",
        ),
        (
            {
                "ssl.keystore.location": "{pem}",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.password": "hush",
            },
            "ssl.keystore.password does not apply to PEM files: use ssl.key.password",
        ),
        ({"ssl.keystore.type": "BKS"}, "ssl.keystore.type is BKS; it must be one of JKS, PKCS12"),
        (
            {"ssl.keystore.location": "{ca}", "ssl.keystore.type": "PEM"},
            "ssl.keystore.location {ca} has no private key",
        ),
        (
            {"ssl.keystore.location": "{key}", "ssl.keystore.type": "PEM"},
            "{key} has a private key and no certificate",
        ),
        (
            {"ssl.keystore.location": "{encrypted}", "ssl.keystore.type": "PEM"},
            "its private key is encrypted and needs ssl.key.password",
        ),
        (
            {"ssl.keystore.key": "k", "ssl.keystore.type": "PEM"},
            "ssl.keystore.certificate.chain of listener SECURE is not set",
        ),
        (
            {"ssl.keystore.certificate.chain": "c", "ssl.keystore.type": "PEM"},
            "ssl.keystore.key of listener SECURE is not set",
        ),
        (
            {"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c"},
            "ssl.keystore.type is JKS, and only PEM can be given inline",
        ),
        (
            {
                "ssl.truststore.certificates": "c",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": "{ca}",
            },
            "ssl.truststore.location cannot be set together with an inline truststore",
        ),
        (
            {"ssl.keystore.location": "{damaged}", "ssl.keystore.type": "PEM"},
            "ssl.keystore.location {damaged} has a certificate that is damaged",
        ),
        (
            {"ssl.truststore.location": "{key}", "ssl.truststore.type": "PEM"},
            "ssl.truststore.location {key} has no certificate",
        ),
        (
            {"ssl.truststore.location": "{empty}", "ssl.truststore.type": "PEM"},
            "ssl.truststore.location {empty} has no certificate",
        ),
    ],
)
def test_an_error_names_the_setting_and_says_what_to_do(
    settings: dict[str, str], problem: str, tmp_path: Path
) -> None:
    issued = castle_authority().issue("CN=server")
    files = {
        "p12": issued.write_pkcs12(tmp_path, "server"),
        "pem": issued.write_pem(tmp_path, "server"),
        "encrypted": issued.write_pem(tmp_path, "encrypted", encrypted=True),
        "ca": castle_authority().write_pem(tmp_path),
        "key": str(tmp_path / "key.pem"),
        "empty": str(tmp_path / "empty.pem"),
        "damaged": str(tmp_path / "damaged.pem"),
    }
    Path(files["damaged"]).write_text(
        issued.key_pem + "-----BEGIN CERTIFICATE-----\nMIIBAAAA\n-----END CERTIFICATE-----\n"
    )
    Path(files["key"]).write_text(issued.key_pem)
    Path(files["empty"]).touch()
    with pytest.raises(TlsConfigError) as raised:
        load({name: value.format_map(files) for name, value in settings.items()})
    assert problem.format_map(files) in str(raised.value)
    assert "hush" not in str(raised.value)


def test_passwords_do_not_show(tmp_path: Path) -> None:
    path = castle_authority().issue("CN=server").write_pkcs12(tmp_path, "server")
    stores = load({"ssl.keystore.location": path, "ssl.keystore.password": PASSWORD})
    assert PASSWORD not in repr(stores)
