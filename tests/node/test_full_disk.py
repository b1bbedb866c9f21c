"""A broker on a file system that is really full: what clients get, and how it recovers."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wait import wait_until

from barnabas import Consumer, KafkaError, Producer, TopicPartition
from barnabas.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from barnabas.testing import Broker

SIZE_BYTES = 16 << 20
SEGMENT_BYTES = 1 << 20
VALUE = os.urandom(10_000)
SETTINGS = {
    "log.retention.check.interval.ms": 500,
    "log.cleaner.backoff.ms": 500,
    "log.segment.delete.delay.ms": 3_600_000,
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of a few megabytes."""
    path = tmp_path / "disk"
    path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_BYTES}", "tmpfs", str(path)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if mounted.returncode:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    """Another disk: with the metadata log on a full disk, nothing can be changed."""
    return tmp_path / "metadata"


@pytest.fixture
def broker(disk: Path, metadata: Path) -> Iterator[Broker]:
    settings = {**SETTINGS, "metadata.log.dir": str(metadata)}
    with Broker(settings, directory=disk / "data") as broker:
        yield broker


def produce(broker: Broker, topic: str, value: bytes, key: bytes | None = None) -> str:
    """Sends one record; returns the name of the error, or an empty string."""
    errors: list[str] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "retries": 0})
    producer.produce(
        topic, value, key, on_delivery=lambda error, _: errors.append(error.name() if error else "")
    )
    assert producer.flush(20) == 0
    return errors[0]


def fill(broker: Broker, topic: str, keys: int = 10) -> int:
    """Writes records until one fails; returns how many were acknowledged."""
    errors: list[KafkaError] = []
    acknowledged = 0

    def on_delivery(error: KafkaError | None, _: object) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += 1
        else:
            errors.append(error)

    config = {"bootstrap.servers": broker.bootstrap_servers, "retries": 0, "acks": 1}
    producer = Producer({**config, "linger.ms": 0})
    for number in range(5000):
        producer.produce(topic, VALUE, str(number % keys), on_delivery=on_delivery)
        producer.poll(0.01 if number % 10 == 0 else 0)
        if errors:
            break
    producer.flush(20)
    assert errors, "the disk did not become full"
    assert {error.name() for error in errors} == {"KAFKA_STORAGE_ERROR"}
    return acknowledged


def count(broker: Broker, topic: str) -> int:
    config = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"}
    consumer = Consumer({**config, "enable.auto.commit": False})  # or `close` retries for a minute
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.assign([TopicPartition(topic, 0, low)])
    seen = 0
    next_offset = low
    while next_offset < high:
        message = consumer.poll(10)
        assert message is not None
        assert message.error() is None
        next_offset = message.offset() + 1
        seen += 1
    consumer.close()
    return seen


def free_bytes(disk: Path) -> int:
    space = os.statvfs(disk)
    return space.f_bavail * space.f_frsize


def has_space(disk: Path) -> bool:
    return free_bytes(disk) > 4 * SEGMENT_BYTES


def test_a_full_disk_rejects_appends_and_serves_everything_before_them(
    broker: Broker, disk: Path
) -> None:
    broker.create_topic("orders", 1, {"segment.bytes": SEGMENT_BYTES})
    acknowledged = fill(broker, "orders")
    assert acknowledged > 1000
    assert count(broker, "orders") >= acknowledged
    write_filler(disk, free_bytes(disk))
    assert produce(broker, "orders", VALUE) == "KAFKA_STORAGE_ERROR"


def test_space_is_free_as_soon_as_a_topic_is_deleted(broker: Broker, disk: Path) -> None:
    for topic in ("orders", "old"):
        broker.create_topic(topic, 1, {"segment.bytes": SEGMENT_BYTES})
    fill(broker, "old")
    write_filler(disk, free_bytes(disk))
    assert produce(broker, "orders", VALUE) == "KAFKA_STORAGE_ERROR"
    broker.delete_topic("old")
    wait_until(lambda: has_space(disk), "there is space")
    assert produce(broker, "orders", VALUE) == ""


def test_space_is_free_as_soon_as_records_are_deleted(broker: Broker, disk: Path) -> None:
    broker.create_topic("orders", 1, {"segment.bytes": SEGMENT_BYTES})
    acknowledged = fill(broker, "orders")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for deleted in admin.delete_records([TopicPartition("orders", 0, acknowledged - 10)]).values():
        assert deleted.result(10).low_watermark == acknowledged - 10
    wait_until(lambda: has_space(disk), "there is space")
    assert produce(broker, "orders", VALUE) == ""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_broker_whose_disk_is_full_of_deleted_segments_starts(
    broker: Broker, disk: Path, is_killed: bool
) -> None:
    broker.create_topic("orders", 1, {"segment.bytes": SEGMENT_BYTES})
    broker.create_topic("kept", 1)
    assert produce(broker, "kept", b"first") == ""
    fill(broker, "orders")
    broker.stop()
    folder = disk / "data" / "orders-0"
    for path in sorted(folder.glob("*.log"))[:-1]:
        path.rename(f"{path}.deleted")  # as retention does
    if is_killed:
        (disk / "data" / ".kafka_cleanshutdown").unlink()
    write_filler(disk, free_bytes(disk))
    assert free_bytes(disk) == 0
    broker.start()
    assert not list(folder.glob("*.deleted"))
    assert has_space(disk)
    assert produce(broker, "kept", b"second") == ""
    assert count(broker, "kept") == 2


def test_a_cleaning_that_does_not_fit_leaves_the_log_and_is_done_when_there_is_space(
    broker: Broker, disk: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"segment.bytes": 4 * SEGMENT_BYTES, "min.cleanable.dirty.ratio": 0.01}
    broker.create_topic("prices", 1, config)
    write_filler(disk, 6 << 20)
    fill(broker, "prices", keys=700)
    before = count(broker, "prices")
    assert before > 900
    alter(broker, "prices", "cleanup.policy", "compact")
    wait_until(lambda: "prices-0 cannot be compacted" in caplog.text, "the cleaning has failed")
    assert count(broker, "prices") == before
    assert not list((disk / "data" / "prices-0").glob("*.cleaned"))
    (disk / "filler").unlink()
    broker.compact()
    assert count(broker, "prices") == 700
    assert caplog.text.count("prices-0 cannot be compacted") == 1


def write_filler(disk: Path, size_bytes: int) -> None:
    (disk / "filler").write_bytes(bytes(size_bytes))


def alter(broker: Broker, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for altered in admin.incremental_alter_configs([resource]).values():
        altered.result(10)
