"""kill -9 under load: acknowledged records are there afterwards, in order and once.

BARNABAS_CRASH_ROUNDS sets the number of rounds; BARNABAS_SEED repeats or varies the moments.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.cluster.numbered_records import NumberedWriter, read_numbers
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker
from tests.wait import wait_until

PARTITIONS = 3
ROUNDS = int(os.environ.get("BARNABAS_CRASH_ROUNDS", "8"))
SEED = int(os.environ.get("BARNABAS_SEED", "1"))


@pytest.fixture(
    params=[
        pytest.param((BrokerProcess, ROUNDS), id="barnabas"),
        pytest.param((PeerBroker, 2), id="kafka", marks=pytest.mark.peer),
    ]
)
def crashing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Broker, int]]:
    """A broker to kill, and how often."""
    kind, rounds = request.param
    broker: Broker = kind(tmp_path)
    broker.start()
    yield broker, rounds
    broker.kill()


@pytest.mark.timeout(300 + 30 * ROUNDS)
def test_acknowledged_records_survive_kill_9_in_order_and_once(
    crashing: tuple[Broker, int],
) -> None:
    broker, rounds = crashing
    moments = random.Random(SEED)
    topic = "crash"
    # Small segments, so that some kills are while a segment rolls.
    new = NewTopic(topic, PARTITIONS, 1, config={"segment.bytes": "1048576"})
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([new])[topic].result(30)
    writer = NumberedWriter(broker.bootstrap, topic, PARTITIONS, record_bytes=300)
    writer.start()
    try:
        for _ in range(rounds):
            goal = writer.acknowledged.total + moments.randrange(1, 10_000)
            wait_until(
                lambda goal=goal: writer.failure or writer.acknowledged.total >= goal,
                f"{goal} records are acknowledged",
                poll_s=moments.uniform(0.0005, 0.02),
            )
            broker.kill()
            acknowledged = {
                partition: dict(offsets)
                for partition, offsets in writer.acknowledged.numbers.items()
            }
            broker.start()
            with writer.paused():
                verify(broker, topic, acknowledged)
    finally:
        writer.stop()
    verify(broker, topic, writer.acknowledged.numbers)


def verify(broker: Broker, topic: str, acknowledged: dict[int, dict[int, int]]) -> None:
    for partition, offsets in acknowledged.items():
        numbers = read_numbers(broker.bootstrap, topic, partition)
        assert numbers == list(range(len(numbers))), f"{topic}-{partition} is not 0, 1, 2, ..."
        lost = {offset: number for offset, number in offsets.items() if offset >= len(numbers)}
        assert not lost, f"{topic}-{partition}: {len(lost)} acknowledged records are lost"
        assert all(numbers[offset] == number for offset, number in offsets.items())
