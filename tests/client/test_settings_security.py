"""TLS and SASL, from librdkafka's names or from Java's stores and JAAS lines."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.tls_certificates import PASSWORD, castle_authority

from barnabas.client.errors import KafkaException
from barnabas.client.settings import Security, producer_settings

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


def security(conf: dict[str, Any]) -> Security:
    return producer_settings(conf).security


def test_the_default_is_plaintext() -> None:
    assert security({}) == Security()
    assert security({"security.protocol": "ssl"}).protocol == "SSL"


def test_librdkafkas_names_for_tls() -> None:
    resolved = security(
        {
            "security.protocol": "SSL",
            "ssl.ca.location": "ca.pem",
            "ssl.certificate.location": "cert.pem",
            "ssl.key.location": "key.pem",
            "ssl.key.password": "secret",
            "ssl.endpoint.identification.algorithm": "none",
            "enable.ssl.certificate.verification": "false",
            "ssl.cipher.suites": "A:B",
        }
    )
    assert resolved == Security(
        protocol="SSL",
        ca_location="ca.pem",
        certificate_location="cert.pem",
        key_location="key.pem",
        key_password="secret",
        verify_host=False,
        verify_certificates=False,
        cipher_suites="A:B",
    )


def test_javas_pem_stores() -> None:
    resolved = security(
        {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": "ca.pem",
            "ssl.keystore.type": "pem",
            "ssl.keystore.location": "both.pem",
            "ssl.key.password": "secret",
            "ssl.enabled.protocols": "TLSv1.3",
        }
    )
    assert resolved.ca_location == "ca.pem"
    assert resolved.certificate_location == resolved.key_location == "both.pem"
    assert resolved.tls_versions == ("TLSv1.3",)


def test_javas_pem_texts() -> None:
    resolved = security(
        {
            "ssl.truststore.certificates": "CA",
            "ssl.keystore.certificate.chain": "CHAIN",
            "ssl.keystore.key": "KEY",
            "ssl.endpoint.identification.algorithm": "",
        }
    )
    assert (resolved.ca_pem, resolved.certificate_pem, resolved.key_pem) == ("CA", "CHAIN", "KEY")
    assert not resolved.verify_host


@pytest.mark.parametrize("kind", ["JKS", "PKCS12", "pkcs12", None])
def test_a_binary_store_is_converted(kind: str | None, tmp_path: Path) -> None:
    authority = castle_authority()
    issued = authority.issue("CN=client")
    conf = {
        "security.protocol": "SSL",
        "ssl.truststore.location": authority.write_pkcs12(tmp_path),
        "ssl.truststore.password": PASSWORD,
        "ssl.keystore.location": issued.write_pkcs12(tmp_path, "client"),
        "ssl.keystore.password": PASSWORD,
    }
    if kind is not None:
        conf |= {"ssl.truststore.type": kind, "ssl.keystore.type": kind}
    resolved = security(conf)
    assert resolved.ca_pem == authority.pem
    assert resolved.certificate_pem == issued.certificate_pem + authority.pem
    assert resolved.key_pem == issued.key_pem


def test_a_file_without_a_type_may_be_pem(tmp_path: Path) -> None:
    path = castle_authority().issue("CN=client").write_pem(tmp_path, "client")
    resolved = security({"security.protocol": "SSL", "ssl.keystore.location": path})
    assert (resolved.certificate_location, resolved.key_location) == (path, path)


@pytest.mark.parametrize("store", ["truststore", "keystore"])
@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"password": "wrong"}, 'it has another password, or is damaged; check "ssl.'),
        ({}, "it needs a password"),
        ({"type": "BKS"}, "is BKS; it must be one of JKS, PKCS12, PEM"),
        ({"location": "missing.p12"}, "missing.p12: it cannot be read: No such file"),
    ],
)
def test_a_store_that_cannot_be_read_is_an_error_that_says_why(
    store: str, settings: dict[str, str], problem: str, tmp_path: Path
) -> None:
    path = castle_authority().issue("CN=client").write_pkcs12(tmp_path, "client")
    conf = {"security.protocol": "SSL", f"ssl.{store}.location": path}
    conf |= {f"ssl.{store}.{name}": value for name, value in settings.items()}
    with pytest.raises(KafkaException) as raised:
        security(conf)
    assert problem in raised.value.args[0].str()
    assert "wrong" not in raised.value.args[0].str()


@pytest.mark.parametrize(
    "line",
    [
        f'{PLAIN} required username="alice" password="a b;c";',
        f"{SCRAM} required username='alice' password='a b;c';",
        f'{SCRAM}   required\n  username = "alice"\n  password="a b\\;c"   tokenauth="false" ;',
    ],
)
def test_a_jaas_line_has_user_and_password(line: str) -> None:
    resolved = security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": line,
        }
    )
    assert (resolved.username, resolved.password) == ("alice", "a b;c")


def test_a_jaas_line_of_another_module_is_an_error_with_the_supported_ones() -> None:
    with pytest.raises(KafkaException, match="PlainLoginModule, ScramLoginModule or Krb5"):
        security(
            {
                "security.protocol": "SASL_SSL",
                "sasl.jaas.config": "com.sun.security.auth.module.LdapLoginModule required;",
            }
        )


def test_a_jaas_line_of_kerberos_names_the_service_and_the_key() -> None:
    resolved = security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required "
            'useKeyTab=true keyTab="/a.keytab" principal="alice@CASTLE" serviceName="broker";',
        }
    )
    assert resolved.kerberos_service == "broker"
    assert (resolved.kerberos_principal, resolved.kerberos_keytab) == ("alice@CASTLE", "/a.keytab")


def test_a_jaas_line_may_have_a_delegation_token() -> None:
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule"
    line = f'{scram} required username="id" password="hmac" tokenauth="true";'
    settings = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256"}
    assert security(settings | {"sasl.jaas.config": line}).is_token


def test_two_passwords_are_an_error_that_names_both_settings() -> None:
    with pytest.raises(KafkaException, match=r'"sasl.password" and "sasl.jaas.config"'):
        security(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.password": "one",
                "sasl.jaas.config": f'{PLAIN} required password="two";',
            }
        )


def test_stores_and_logins_that_the_protocol_does_not_use_are_ignored() -> None:
    resolved = security(
        {
            "security.protocol": "PLAINTEXT",
            "ssl.truststore.location": "truststore.jks",
            "ssl.keystore.location": "keystore.jks",
            "sasl.jaas.config": "com.sun.security.auth.module.Krb5LoginModule required;",
        }
    )
    assert (resolved.ca_location, resolved.certificate_location, resolved.username) == (
        None,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("conf", "problem"),
    [
        ({}, "is not set: use one of PLAIN.*GSSAPI"),
        ({"sasl.mechanism": "FOO"}, "FOO"),
        ({"sasl.mechanism": "PLAIN"}, "sasl.username"),
        ({"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "a"}, "sasl.password"),
        ({"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"}, "endpoint.url"),
    ],
)
def test_an_incomplete_login_is_an_error_at_once(conf: dict[str, Any], problem: str) -> None:
    with pytest.raises(KafkaException, match=problem):
        security({"security.protocol": "SASL_SSL", **conf})


def test_tokens_come_from_a_callback() -> None:
    resolved = security(
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.config": "scope=x",
            "oauth_cb": print,
        }
    )
    assert (resolved.oauth_cb, resolved.oauthbearer_config) == (print, "scope=x")


def test_an_unsecured_token_has_its_principal() -> None:
    resolved = security(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": True,
        }
    )
    assert resolved.oauth_cb is not None
    config = "principal=admin scope=read,write lifeSeconds=60 extension_team=castle"
    token, expires_s, principal, extensions = resolved.oauth_cb(config)
    claims = decoded(token)
    assert (claims["sub"], claims["scope"]) == ("admin", ["read", "write"])
    assert claims["exp"] - claims["iat"] == 60
    assert (expires_s, principal, extensions) == (claims["exp"], "admin", {"team": "castle"})


def test_a_token_is_fetched_with_the_clients_credentials() -> None:
    requests: list[tuple[str, str]] = []

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            requests.append((self.headers["Authorization"], body))
            token = f"e30.{encoded({'sub': 'me', 'exp': 4_000_000_000})}.sig"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"access_token": token}).encode())

        def log_message(self, *_: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        resolved = security(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.oauthbearer.method": "OIDC",
                "sasl.oauthbearer.token.endpoint.url": f"http://127.0.0.1:{server.server_port}/",
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": "hush",
                "sasl.oauthbearer.scope": "a b",
                "sasl.oauthbearer.extensions": "team=castle,floor=2",
            }
        )
        assert resolved.oauth_cb is not None
        token, expires_s, principal, extensions = resolved.oauth_cb("")
    assert requests == [
        (
            f"Basic {base64.b64encode(b'me:hush').decode()}",
            "grant_type=client_credentials&scope=a+b",
        )
    ]
    assert token.startswith("e30.")
    assert (expires_s, principal) == (4_000_000_000, "me")
    assert extensions == {"team": "castle", "floor": "2"}


def encoded(claims: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")


def decoded(token: str) -> dict[str, Any]:
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    return claims


def test_secrets_are_not_shown() -> None:
    shown = repr(security({"sasl.password": "hush", "ssl.key.password": "hush"}))
    assert "hush" not in shown
