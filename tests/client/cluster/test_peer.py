"""The real Kafka lets us in by every way that it knows and we do."""

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.cluster.harness import CA, CERTIFICATES, OURS
from tests.conformance.brokers import PeerBroker, is_peer_installed, run_peer
from tests.server.harness import on_a_loop

from barnabas.client.cluster import ClusterClient, CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.settings import ConnectionSettings, Security
from barnabas.config.addresses import Endpoint
from barnabas.testing.ports import free_port

pytestmark = pytest.mark.peer

_LOGIN = "org.apache.kafka.common.security"
SESSION_MS = 2_000


class SecuredKafka(PeerBroker):
    """A listener for each security protocol, and one for tools that need none."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ports = {"SASL": free_port(), "SSL": free_port(), "SASL_SSL": free_port()}
        listeners = [
            f"PLAINTEXT://127.0.0.1:{self.port}",
            *(f"{name}://127.0.0.1:{port}" for name, port in self.ports.items()),
            f"CONTROLLER://127.0.0.1:{self.port + 1}",
        ]
        mechanisms = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
        self.settings = {
            "listeners": ",".join(listeners),
            "advertised.listeners": ",".join(listeners),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL:SASL_PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": mechanisms,
            "connections.max.reauth.ms": str(SESSION_MS),
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(CERTIFICATES / "server.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": CA,
        }
        for listener in ("sasl", "sasl_ssl"):
            prefix = f"listener.name.{listener}"
            self.settings |= {
                f"{prefix}.plain.sasl.jaas.config": f"{_LOGIN}.plain.PlainLoginModule required "
                'user_alice="secret";',
                f"{prefix}.scram-sha-256.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule "
                "required;",
                f"{prefix}.scram-sha-512.sasl.jaas.config": f"{_LOGIN}.scram.ScramLoginModule "
                "required;",
                f"{prefix}.oauthbearer.sasl.jaas.config": f"{_LOGIN}.oauthbearer."
                'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker";',
            }


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not here")
    broker = SecuredKafka(tmp_path_factory.mktemp("kafka"))
    broker.start()
    try:
        alter = ("configs", "--bootstrap-server", broker.bootstrap, "--alter")
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            password = f"{mechanism}=[password=secret]"
            user = ("--entity-type", "users", "--entity-name", "alice")
            run_peer("tool", *alter, *user, "--add-config", password)
        yield broker
    finally:
        broker.stop()


def a_token(_: str) -> tuple[str, float]:
    """A token without a signature, for a broker that does not check it."""
    now_s = time.time()
    header, claims = {"alg": "none"}, {"sub": "alice", "iat": now_s - 1, "exp": now_s + 300}
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()) for each in (header, claims)]
    return b".".join(part.rstrip(b"=") for part in parts).decode() + ".", now_s + 300


WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "PLAIN": ("SASL", {"mechanism": "PLAIN"}),
    "SCRAM-SHA-256": ("SASL", {"mechanism": "SCRAM-SHA-256"}),
    "SCRAM-SHA-512": ("SASL", {"mechanism": "SCRAM-SHA-512"}),
    "OAUTHBEARER": ("SASL", {"mechanism": "OAUTHBEARER", "oauth_cb": a_token}),
    "SSL": ("SSL", {}),
    "SCRAM over TLS": ("SASL_SSL", {"mechanism": "SCRAM-SHA-512"}),
}


def settings(kafka: SecuredKafka, listener: str, **security: Any) -> ConnectionSettings:
    protocol = "SASL_PLAINTEXT" if listener == "SASL" else listener
    known = {
        "username": "alice",
        "password": "secret",
        "ca_location": CA,
        "certificate_location": OURS,
        "key_location": OURS,
        **security,
    }
    return ConnectionSettings(
        bootstrap_servers=(Endpoint("127.0.0.1", kafka.ports[listener]),),
        security=Security(protocol=protocol, **known),
    )


@pytest.mark.parametrize("way", WAYS)
def test_kafka_accepts_the_credentials(kafka: SecuredKafka, way: str) -> None:
    listener, security = WAYS[way]

    @on_a_loop
    async def scenario() -> None:
        cluster = ClusterClient(settings(kafka, listener, **security))
        response = await cluster.describe(None, timeout_ms=4_000)
        assert response.brokers[0].port == kafka.ports[listener]
        assert await cluster.coordinator(CoordinatorType.GROUP, "g", Deadline.after(4_000)) == 1
        await cluster.close()

    scenario()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_kafka_rejects_a_wrong_password(kafka: SecuredKafka, mechanism: str) -> None:
    @on_a_loop
    async def scenario() -> None:
        cluster = ClusterClient(settings(kafka, "SASL", mechanism=mechanism, password="wrong"))
        with pytest.raises(KafkaException, match="Authentication failed") as caught:
            await cluster.describe(None, timeout_ms=4_000)
        assert caught.value.args[0].code() == KafkaError._AUTHENTICATION
        await cluster.close()

    scenario()


@pytest.mark.parametrize("way", ["SCRAM-SHA-256", "OAUTHBEARER"])
def test_a_connection_outlives_its_session(kafka: SecuredKafka, way: str) -> None:
    listener, security = WAYS[way]

    @on_a_loop
    async def scenario() -> None:
        cluster = ClusterClient(settings(kafka, listener, **security))
        end_s = time.monotonic() + 1.5 * SESSION_MS / 1000
        while time.monotonic() < end_s:
            await cluster.describe([], timeout_ms=1_000)
        ((_, counters),) = cluster.counters.values()
        assert counters.connects == 1
        await cluster.close()

    scenario()
