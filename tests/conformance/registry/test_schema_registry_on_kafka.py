"""The registry on the real Kafka: who writes there, and what its cleaner leaves."""

import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.brokers import PeerBroker
from tests.registry.http_requests import send_request, record
from tests.registry.processes import RegistryProcess
from tests.wait import wait_until

from barnabas import Consumer, Message, TopicPartition
from barnabas.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from barnabas.registry.service import SchemaRegistry

pytestmark = pytest.mark.peer

PATIENCE_S = 90
"""Kafka looks every 15 s for something to clean."""
CLEANED_SOON = {"segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}


def test_another_takes_over_when_the_writer_dies(
    kafka: PeerBroker, topic: str, tmp_path: Path
) -> None:
    own = ("--schemas-topic", topic, "--group-id", topic)
    with ExitStack() as ending:

        def start(name: str) -> RegistryProcess:
            started = RegistryProcess(kafka.bootstrap, tmp_path / f"{name}.log", *own)
            ending.callback(started.stop, signal.SIGKILL)
            return started.wait()

        two = [start("first"), start("second")]
        assert [registered(each.url, f"S{n}") for n, each in enumerate(two)] == [1, 2]
        wait_until(
            lambda: sum(each.is_leader for each in two) == 1, "one of them writes", PATIENCE_S
        )
        (writer,) = (each for each in two if each.is_leader)
        (other,) = (each for each in two if each is not writer)
        writer.stop(signal.SIGKILL)
        assert registered(other.url, "S2") == 3
        assert subjects(start("third").url) == ["S0", "S1", "S2"]


def test_what_the_cleaner_leaves_is_the_same_registry(kafka: PeerBroker, topic: str) -> None:
    with SchemaRegistry(kafka.bootstrap, topic=topic, group_id=topic) as registry:
        set_on_topic(kafka, topic, CLEANED_SOON)
        url = registry.url
        for subject in "Kept", "Hidden", "Gone":
            registered(url, subject, "x", "y")
        registered(url, "Kept", "x")
        for subject, permanent in ("Hidden", ""), ("Gone", ""), ("Gone", "?permanent=true"):
            assert send_request(url, "DELETE", f"/subjects/{subject}{permanent}").status == 200
        for level in ("FULL", "BACKWARD") * 5:
            for path in "/config", "/config/Kept":
                assert send_request(url, "PUT", path, {"compatibility": level}).status == 200
        before = all_that_is_told(url)
        assert before["/subjects"] == ["Kept"]

        def is_cleaned() -> bool:
            # A segment is closed by the next record that comes, and only then cleaned.
            send_request(url, "PUT", "/config", {"compatibility": "BACKWARD"})
            left, end = records_of(kafka, topic)
            return left < end / 4  # half of what there was were markers of transactions

        wait_until(is_cleaned, f"{topic} is cleaned", PATIENCE_S, poll_s=0.5)
    with SchemaRegistry(kafka.bootstrap, topic=topic, group_id=topic) as anew:
        assert all_that_is_told(anew.url) == before
        assert registered(anew.url, "Later") == 5


def registered(url: str, subject: str, *fields: str) -> int:
    """The id of the schema, once somebody writes."""
    ids: list[int] = []

    def is_registered() -> bool:
        body = record(*fields or "x", name=subject)
        answer = send_request(url, "POST", f"/subjects/{subject}/versions", body)
        assert answer.status in (200, 500), answer.content
        ids.extend([answer.json["id"]] if answer.status == 200 else [])
        return bool(ids)

    wait_until(is_registered, f"{subject} is registered", PATIENCE_S)
    return ids[0]


def subjects(url: str) -> list[str]:
    names: list[str] = send_request(url, "GET", "/subjects").json
    return names


def all_that_is_told(url: str) -> dict[str, Any]:
    paths = [
        *("/subjects", "/subjects?deleted=true", "/schemas", "/schemas?deleted=true", "/mode"),
        *("/config", "/config/Kept", "/subjects/Kept/versions/latest"),
        *(f"/schemas/ids/{number}" for number in range(1, 6)),
    ]
    return {path: send_request(url, "GET", path).json for path in paths}


def set_on_topic(kafka: PeerBroker, topic: str, settings: dict[str, str]) -> None:
    changes = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource("topic", topic, incremental_configs=changes)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def records_of(kafka: PeerBroker, topic: str) -> tuple[int, int]:
    """How many are left, and how many there were."""
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
