"""Kafka's own client logs in with every mechanism, and re-authenticates while it produces."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import run_peer, run_peer_process
from tests.conformance.secured_broker import ALLOWED_TOPIC, SCRAM, SecuredBroker, secured_broker
from tests.conformance.secured_broker import PASSWORD as SECURED_PASSWORD
from tests.conformance.tls_clients import Login
from tests.security.authentication.brokers import PASSWORD, USER, add_scram_user, sasl_broker
from tests.tls_certificates import Authority

from barnabas.admin import AdminClient
from barnabas.testing import Broker

pytestmark = pytest.mark.peer

PACKAGE = "org.apache.kafka.common.security"
WITH_PASSWORD = f'required username="{USER}" password="{{password}}";'
SCRAM_LOGIN = f"{PACKAGE}.scram.ScramLoginModule {WITH_PASSWORD}"
LOGINS = {
    "PLAIN": f"{PACKAGE}.plain.PlainLoginModule {WITH_PASSWORD}",
    "SCRAM-SHA-256": SCRAM_LOGIN,
    "SCRAM-SHA-512": SCRAM_LOGIN,
    "OAUTHBEARER": f"{PACKAGE}.oauthbearer.OAuthBearerLoginModule required "
    f'unsecuredLoginStringClaim_sub="{USER}";',
}


def produce(broker: Broker, folder: Path, mechanism: str, password: str, records: int) -> str:
    """Produces five records a second. Returns what the tool prints."""
    config = folder / "client.properties"
    config.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\n"
        f"sasl.jaas.config={LOGINS[mechanism].format(password=password)}\n"
    )
    return run_peer(
        *("tool", "producer-perf-test", "--topic", "t", "--num-records", str(records)),
        *("--record-size", "10", "--throughput", "5", "--command-config", str(config)),
        *("--bootstrap-server", broker.bootstrap_servers),
    )


@pytest.mark.parametrize("mechanism", LOGINS)
def test_kafkas_client_re_authenticates(tmp_path: Path, mechanism: str) -> None:
    with sasl_broker(connections_max_reauth_ms="2000") as broker:
        broker.create_topic("t", 1)
        add_scram_user(broker, USER, PASSWORD)
        assert "30 records sent" in produce(broker, tmp_path, mechanism, PASSWORD, 30)
        metrics = {
            gauge.name.removeprefix("kafka_server_socket_server_metrics_"): gauge.value
            for gauge in broker._node._metrics.gauges()
        }
        assert metrics["successful_reauthentication_total"] >= 1
        assert metrics["failed_reauthentication_total"] == 0
        assert metrics["expired_connections_killed_count"] == 0


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_kafkas_client_with_a_wrong_password_is_not_served(
    tmp_path: Path, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    with sasl_broker() as broker:
        broker.create_topic("t", 1)
        add_scram_user(broker, USER, PASSWORD)
        assert produce(broker, tmp_path, mechanism, "wrong", 1).startswith("0 records sent")
    assert f"with {mechanism} failed: user 'alice' has another password" in caplog.text


# Over TLS, with ACLs


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("java")) as running:
        yield running


def produce_over_tls(
    secured: SecuredBroker,
    folder: Path,
    login: Login,
    topic: str = ALLOWED_TOPIC,
    ca: str | None = None,
    host: str = "localhost",
) -> str:
    """Produces one record. Returns what the tool prints, with its errors."""
    config = folder / "client.properties"
    config.write_text(
        "security.protocol=SASL_SSL\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={ca or secured.connection.ca}\n"
        f"sasl.mechanism={login.mechanism}\nsasl.jaas.config={java_login(login)}\n"
        "delivery.timeout.ms=5000\nrequest.timeout.ms=4000\nmax.block.ms=5000\n"
    )
    port = secured.connection.bootstrap.rpartition(":")[2]
    done = run_peer_process(
        *("tool", "producer-perf-test", "--topic", topic, "--num-records", "1"),
        *("--record-size", "10", "--throughput", "5", "--command-config", str(config)),
        *("--bootstrap-server", f"{host}:{port}"),
    )
    return done.stdout + done.stderr


def java_login(login: Login) -> str:
    if login.mechanism == "PLAIN":
        module = f"{PACKAGE}.plain.PlainLoginModule"
    else:
        module = f"{PACKAGE}.scram.ScramLoginModule"
    entry = f'{module} required username="{login.user}" password="{login.password}"'
    return entry + (' tokenauth="true";' if login.is_delegation_token else ";")


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_kafkas_client_produces_over_tls(
    mechanism: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    login = Login(mechanism, "alice", SECURED_PASSWORD)
    assert "1 records sent" in produce_over_tls(secured, tmp_path, login)


def test_kafkas_client_uses_a_delegation_token(secured: SecuredBroker, tmp_path: Path) -> None:
    alice = AdminClient(secured.login("PLAIN").librdkafka_settings)
    token = alice.create_delegation_token().result(30)
    login = Login("SCRAM-SHA-512", token.token_id, token.password, is_delegation_token=True)
    assert "1 records sent" in produce_over_tls(secured, tmp_path, login)


@pytest.mark.parametrize(
    ("login", "line"),
    [
        (Login("PLAIN", "alice", "guessed"), "user 'alice' has another password"),
        (Login("SCRAM-SHA-512", "nobody", "guessed"), "user 'nobody' is unknown"),
        (
            Login("SCRAM-SHA-256", "a-token", "of nobody", is_delegation_token=True),
            "user 'a-token' is unknown",
        ),
    ],
    ids=["password", "user", "token"],
)
def test_kafkas_client_with_a_wrong_login_gets_an_error(
    login: Login,
    line: str,
    secured: SecuredBroker,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    printed = produce_over_tls(secured, tmp_path, login)
    assert "SaslAuthenticationException" in printed
    assert line in caplog.text
    assert login.password not in caplog.text


def test_kafkas_client_does_not_trust_another_authority_or_host(
    secured: SecuredBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    login = Login("PLAIN", "alice", SECURED_PASSWORD)
    other = Authority("CN=Other").write_pem(tmp_path, "other")
    logins = secured.successful_logins()
    assert "SslAuthenticationException" in produce_over_tls(secured, tmp_path, login, ca=other)
    printed = produce_over_tls(secured, tmp_path, login, host="127.0.0.1")
    assert "SslAuthenticationException" in printed
    assert secured.successful_logins() == logins
    assert "it rejects the certificate of this listener" in caplog.text


def test_kafkas_client_without_a_permission_gets_an_error(
    secured: SecuredBroker, tmp_path: Path
) -> None:
    topic = secured.create_topic("java-denied", "bob")
    printed = produce_over_tls(secured, tmp_path, Login("PLAIN", "alice", SECURED_PASSWORD), topic)
    assert "TopicAuthorizationException" in printed
    assert secured.end_offset(topic) == 0
