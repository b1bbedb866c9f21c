"""Real workers of Kafka Connect on our broker: a group, exactly once, one worker killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import Broker
from tests.conformance.connect.workers import KafkaWorker
from tests.wait import wait_until

from barnabas import Consumer

pytestmark = pytest.mark.peer

_STRING_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
_SETTINGS = {
    "group.id": "real-workers",
    "exactly.once.source.support": "enabled",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "1000",
    **{f"{kind}.storage.topic": f"real-workers-{kind}" for kind in ("config", "offset", "status")},
}
_TOPIC = "real-workers-lines"


@pytest.fixture
def workers(broker: Broker, tmp_path: Path) -> Iterator[list[KafkaWorker]]:
    """Two workers of one group."""
    workers = [KafkaWorker(tmp_path / str(index), broker.bootstrap, _SETTINGS) for index in (0, 1)]
    try:
        for worker in workers:
            worker.start()
        yield workers
    finally:
        for worker in workers:
            worker.stop()


def test_connectors_move_to_the_worker_that_is_left(
    broker: Broker, workers: list[KafkaWorker], tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("one\ntwo\n")
    shared = {"key.converter": _STRING_CONVERTER, "value.converter": _STRING_CONVERTER}
    first, second = workers
    configs = {
        "source": {"connector.class": "FileStreamSource", "topic": _TOPIC, "file": str(source)},
        "sink": {"connector.class": "FileStreamSink", "topics": _TOPIC, "file": str(target)},
    }
    for name, config in configs.items():
        assert first.api("PUT", f"/connectors/{name}/config", config | shared).status == 201
    wait_until(lambda: target.exists() and target.read_text() == "one\ntwo\n", "lines arrive", 60)
    first.kill()
    with source.open("a") as file:
        file.write("three\n")
    wait_until(lambda: target.read_text().endswith("three\n"), "the other worker takes over", 60)
    assert [second.api.states(name) for name in configs] == [("RUNNING", ["RUNNING"])] * 2
    assert _read_committed(broker) == ["one", "two", "three"]


def _read_committed(broker: Broker) -> list[str]:
    settings = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": "real-workers-check",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    with Consumer(settings) as consumer:
        consumer.subscribe([_TOPIC])
        lines: list[str] = []
        while True:
            message = consumer.poll(30)
            if message is None or message.error() is not None:
                return lines
            lines.append(message.value().decode())
