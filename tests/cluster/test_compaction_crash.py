"""kill -9 while segments are compacted: the last acknowledged value of each key is there.

BARNABAS_CRASH_ROUNDS sets the number of rounds; BARNABAS_SEED repeats or varies the moments.
"""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.numbered_records import DEADLINE_S, NumberedWriter, end_offset, parse_number
from tests.conformance.brokers import BrokerProcess
from tests.wait import wait_until

TOPIC, PARTITIONS, KEYS = "compacted", 3, 50
ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "4"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))
SETTINGS = {"log.cleaner.backoff.ms": "1", "log.cleaner.threads": "2"}
CONFIG = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "internal.segment.bytes": "20000",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    broker = BrokerProcess(tmp_path, settings=SETTINGS)
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.timeout(300 + 30 * ROUNDS)
def test_the_last_acknowledged_value_of_each_key_survives_kill_9(broker: BrokerProcess) -> None:
    moments = random.Random(SEED)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, config=CONFIG)])[TOPIC].result(30)
    writer = NumberedWriter(
        broker.bootstrap, TOPIC, PARTITIONS, record_bytes=200, pause_s=0.001, keys=KEYS
    )
    writer.start()
    try:
        for _ in range(ROUNDS):
            wait_until(
                lambda: writer.failure or has_replaced_segments(broker),
                "segments are replaced",
                poll_s=moments.uniform(0.0005, 0.02),
            )
            broker.kill()
            acknowledged = {
                partition: dict(offsets)
                for partition, offsets in writer.acknowledged.numbers.items()
            }
            broker.start()
            with writer.paused():
                verify(broker, acknowledged)
    finally:
        writer.stop()
    verify(broker, writer.acknowledged.numbers)
    left = sum(len(read_numbers(broker, partition)) for partition in range(PARTITIONS))
    assert left < writer.acknowledged.total / 2
    broker.stop()
    assert not [path for path in broker.data.rglob("*") if path.suffix in (".cleaned", ".swap")]


def has_replaced_segments(broker: BrokerProcess) -> bool:
    """Whether a cleaning has put a segment in place since the start, or is about to."""
    return any(path.suffix == ".deleted" for path in broker.data.glob(f"{TOPIC}-*/*"))


def verify(broker: BrokerProcess, acknowledged: dict[int, dict[int, int]]) -> None:
    """Offsets keep their records, and no key has lost its last acknowledged value."""
    for partition, offsets in acknowledged.items():
        numbers = read_numbers(broker, partition)
        assert all(offsets.get(offset, number) == number for offset, number in numbers.items()), (
            f"an offset of {TOPIC}-{partition} has another record"
        )
        last = {number % KEYS: number for _, number in sorted(numbers.items())}
        for number in sorted(offsets.values())[-KEYS:]:
            assert last[number % KEYS] >= number, f"{number} is lost in {TOPIC}-{partition}"


def read_numbers(broker: BrokerProcess, partition: int) -> dict[int, int]:
    """Returns the number of each record of a partition by its offset."""
    end_offset(broker.bootstrap, TOPIC, partition)  # when it has a leader
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    numbers: dict[int, int] = {}
    deadline_s = time.monotonic() + DEADLINE_S
    try:
        while time.monotonic() < deadline_s:
            for message in consumer.consume(10_000, timeout=0.1):
                error, offset = message.error(), message.offset()
                if error and error.code() == KafkaError._PARTITION_EOF:
                    return numbers
                assert error is None, error
                assert offset is not None
                numbers[offset] = parse_number(message.value())
    finally:
        consumer.close()
    raise TimeoutError(f"{TOPIC}-{partition} was not read in {DEADLINE_S} s")
