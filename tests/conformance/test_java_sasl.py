"""Kafka's own client logs in with every mechanism, and re-authenticates while it produces."""

from pathlib import Path

import pytest
from tests.conformance.brokers import run_peer
from tests.security.authentication.brokers import PASSWORD, USER, add_scram_user, sasl_broker

from barnabas.testing import Broker

pytestmark = pytest.mark.peer

PACKAGE = "org.apache.kafka.common.security"
WITH_PASSWORD = f'required username="{USER}" password="{{password}}";'
SCRAM = f"{PACKAGE}.scram.ScramLoginModule {WITH_PASSWORD}"
LOGINS = {
    "PLAIN": f"{PACKAGE}.plain.PlainLoginModule {WITH_PASSWORD}",
    "SCRAM-SHA-256": SCRAM,
    "SCRAM-SHA-512": SCRAM,
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
