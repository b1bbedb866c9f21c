"""The registry on the real Kafka: failover of its leader, and compaction of its topic."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.brokers import PeerBroker
from tests.registry.http_requests import record, send_request
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

from barnabas import Consumer, Message, TopicPartition
from barnabas.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from barnabas.registry.service import SchemaRegistry

pytestmark = pytest.mark.peer

TIMEOUT_S = 90
"""Kafka checks every 15 s for logs to clean."""
FAST_CLEANING = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


def test_another_instance_leads_when_the_leader_dies(
    kafka: PeerBroker, topic: str, tmp_path: Path
) -> None:
    own = ("--schemas-topic", topic, "--group-id", topic)
    with ExitStack() as ending:

        def start(name: str) -> RegistryProcess:
            started = RegistryProcess(kafka.bootstrap, tmp_path / f"{name}.log", *own)
            ending.callback(started.stop, signal.SIGKILL)
            return started.wait()

        two = [start("first"), start("second")]
        assert [register(instance.url, f"S{n}") for n, instance in enumerate(two)] == [1, 2]
        wait_until(
            lambda: sum(instance.is_leader for instance in two) == 1,
            "one of them leads",
            TIMEOUT_S,
        )
        (leader,) = (instance for instance in two if instance.is_leader)
        (other,) = (instance for instance in two if instance is not leader)
        leader.stop(signal.SIGKILL)
        assert register(other.url, "S2") == 3
        assert subjects(start("third").url) == ["S0", "S1", "S2"]


def test_a_compacted_topic_has_the_same_state(kafka: PeerBroker, topic: str) -> None:
    with SchemaRegistry(kafka.bootstrap, topic=topic, group_id=topic) as registry:
        set_topic_configs(kafka, topic, FAST_CLEANING)
        url = registry.url
        for subject in "Kept", "Hidden", "Gone":
            register(url, subject, "x", "y")
        register(url, "Kept", "x")
        for subject, permanent in ("Hidden", ""), ("Gone", ""), ("Gone", "?permanent=true"):
            assert send_request(url, "DELETE", f"/subjects/{subject}{permanent}").status == 200
        for level in ("FULL", "BACKWARD") * 5:
            for path in "/config", "/config/Kept":
                assert send_request(url, "PUT", path, {"compatibility": level}).status == 200
        before = read_state(url)
        assert before["/subjects"] == ["Kept"]

        def is_cleaned() -> bool:
            # A segment is rolled by the next record, and only then cleaned.
            send_request(url, "PUT", "/config", {"compatibility": "BACKWARD"})
            left, end = count_records(kafka, topic)
            return left < end / 4  # half of the records were transaction markers

        wait_until(is_cleaned, f"{topic} is cleaned", TIMEOUT_S, poll_s=0.5)
    with SchemaRegistry(kafka.bootstrap, topic=topic, group_id=topic) as restarted:
        assert read_state(restarted.url) == before
        assert register(restarted.url, "Later") == 5


def register(url: str, subject: str, *fields: str) -> int:
    """Registers a schema when there is a leader, and returns its id."""
    ids: list[int] = []

    def is_registered() -> bool:
        body = record(*fields or "x", name=subject)
        response = send_request(url, "POST", f"/subjects/{subject}/versions", body)
        assert response.status in (200, 500), response.content
        ids.extend([response.json["id"]] if response.status == 200 else [])
        return bool(ids)

    wait_until(is_registered, f"{subject} is registered", TIMEOUT_S)
    return ids[0]


def subjects(url: str) -> list[str]:
    names: list[str] = send_request(url, "GET", "/subjects").json
    return names


def read_state(url: str) -> dict[str, Any]:
    paths = [
        *("/subjects", "/subjects?deleted=true", "/schemas", "/schemas?deleted=true", "/mode"),
        *("/config", "/config/Kept", "/subjects/Kept/versions/latest"),
        *(f"/schemas/ids/{number}" for number in range(1, 6)),
    ]
    return {path: send_request(url, "GET", path).json for path in paths}


def set_topic_configs(kafka: PeerBroker, topic: str, settings: dict[str, str]) -> None:
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource("topic", topic, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def count_records(kafka: PeerBroker, topic: str) -> tuple[int, int]:
    """Returns the number of records that are left, and the end offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "not-joined",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[Message] = []
    while not (read and read[-1].error()):  # the end
        read += consumer.consume(1_000, 1)
    consumer.close()
    return len(read) - 1, read[-1].offset() or 0
