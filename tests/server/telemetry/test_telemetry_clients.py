"""librdkafka pushes its metrics to a broker, subscribed to with Kafka's command."""

import asyncio
import gzip
import logging
from collections.abc import Iterator
from typing import Any
from urllib.request import urlopen

import confluent_kafka
import pytest
from tests.server.telemetry.otlp_messages import gauge, metrics_data, point
from tests.wait import wait_until

from barnabas.cli.kafka.client_metrics import main as client_metrics
from barnabas.client.cluster import ClusterClient
from barnabas.client.settings import admin_settings
from barnabas.testing import Broker
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.telemetry import (
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from barnabas.wire.uuid import ZERO

PREFIX = "kafka_client_telemetry_"
GZIP = 1


@pytest.fixture
def broker() -> Iterator[Broker]:
    settings = {"barnabas.metrics.listener": "127.0.0.1:0", "telemetry.max.bytes": "2000"}
    with Broker(settings) as running:
        yield running


def subscribe(broker: Broker, monkeypatch: pytest.MonkeyPatch, *options: str) -> None:
    """Runs kafka-client-metrics."""
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "--name", "all", *options)
    monkeypatch.setattr("sys.argv", ["kafka-client-metrics", *arguments])
    client_metrics()


def telemetry(broker: Broker) -> list[str]:
    with urlopen(f"http://{broker._node.metrics_address}/metrics") as response:
        lines = response.read().decode().splitlines()
    return [line for line in lines if line.startswith(PREFIX)]


def test_metrics_of_librdkafka_are_shown_until_it_disconnects(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(broker, monkeypatch, "--alter", "--metrics", "*", "--interval", "100")
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "castle",
            "enable.metrics.push": True,
            "logger": logging.getLogger("librdkafka"),
        }
    )
    producer.produce("orders", b"x")
    producer.flush()
    name = PREFIX + 'producer_node_request_latency_avg{client_id="castle"'
    wait_until(lambda: any(line.startswith(name) for line in telemetry(broker)), "they arrive")
    del producer
    wait_until(lambda: not telemetry(broker), "they are removed")


def test_a_client_that_no_subscription_matches_pushes_nothing(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--metrics", "*", "--interval", "100", "--match", "client_id=other")
    subscribe(broker, monkeypatch, "--alter", *options)
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "client.id": "castle"}
    )
    producer.produce("orders", b"x")
    producer.flush()
    wait_until(lambda: broker.requests["GetTelemetrySubscriptions"] == 1, "it asks")
    assert broker.requests["PushTelemetry"] == 0


async def exchange(broker: Broker, *contents: bytes) -> list[ErrorCode]:
    """Pushes each content, with its own client. Returns the errors."""
    cluster = ClusterClient(admin_settings({"bootstrap.servers": broker.bootstrap_servers}))
    codes = []
    for content in contents:
        got: Any = await cluster.send_request(
            GetTelemetrySubscriptionsRequest(client_instance_id=ZERO)
        )
        assert got.accepted_compression_types == [4, 3, 1, 2]
        assert (got.telemetry_max_bytes, got.delta_temporality) == (2000, True)
        pushed: Any = await cluster.send_request(
            PushTelemetryRequest(
                client_instance_id=got.client_instance_id,
                subscription_id=got.subscription_id,
                compression_type=GZIP,
                metrics=content,
            )
        )
        codes.append(ErrorCode.of(pushed.error_code))
    await cluster.close()
    return codes


def test_bombs_and_other_bytes_are_rejected_with_kafkas_errors(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(broker, monkeypatch, "--alter", "--metrics", "a.")
    good = metrics_data(gauge("a", point(1)))
    codes = asyncio.run(
        exchange(
            broker,
            gzip.compress(good),
            gzip.compress(bytes(50_000_000)),
            b"no gzip",
            gzip.compress(b"no metrics"),
            b"x" * 3000,
        )
    )
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.TELEMETRY_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_RECORD,
        ErrorCode.TELEMETRY_TOO_LARGE,
    ]


def test_what_is_remembered_of_a_client_is_short(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(broker, monkeypatch, "--alter", "--metrics", "*")

    async def ask() -> None:
        settings = {"bootstrap.servers": broker.bootstrap_servers, "client.id": "c" * 30_000}
        cluster = ClusterClient(admin_settings(settings))
        await cluster.send_request(GetTelemetrySubscriptionsRequest(client_instance_id=ZERO))
        (instance,) = broker._node.broker.telemetry.instances._instances.values()
        assert len(instance.client.client_id) == 256
        await cluster.close()

    asyncio.run(ask())


def test_what_nobody_has_subscribed_to_is_not_shown(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(broker, monkeypatch, "--alter", "--metrics", "*", "--match", "client_id=other")
    content = gzip.compress(metrics_data(gauge("a", point(1))))
    assert asyncio.run(exchange(broker, content)) == [ErrorCode.NONE]
    assert broker._node.broker.telemetry.pushed.pushes == 0
