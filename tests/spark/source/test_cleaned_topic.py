"""Batches and streams read over the holes of a compacted topic; their ranges may end in one."""

import json
import time
from collections.abc import Iterable, Iterator

import pytest
from tests.spark.source.conftest import Reads, numbers

from barnabas import Producer
from barnabas.testing import Broker

TOPIC = "prices"
BEGAN_MS = int(time.time() * 1000) - 1_000
ABORTED = (100, 101)  # the marker is at 102
LEFT = [90, 91, 92, 94, 95, 96, 97, 98, 99, 103]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with a compacted topic; the numbers are those of their offsets."""
    with Broker() as broker:
        broker.create_topic(TOPIC, config={"cleanup.policy": "compact"})
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        write(Producer(settings), range(100))
        producer = Producer({**settings, "transactional.id": "writer"})
        producer.init_transactions()
        producer.begin_transaction()
        write(producer, ABORTED)
        producer.abort_transaction()
        write(Producer(settings), [103])
        broker.compact()
        yield broker


def write(producer: Producer, values: Iterable[int]) -> None:
    for number in values:
        producer.produce(TOPIC, f"{number}", f"{number % 10}", timestamp=BEGAN_MS + number)
    assert producer.flush(30) == 0


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize(
    ("start", "end", "left"),
    [
        (-2, -1, LEFT),
        (0, 90, []),
        (10, 50, []),
        (50, 94, [90, 91, 92]),
        (93, 95, [94]),
        (99, 102, [99]),
        (101, 103, []),
        (102, 104, [103]),
    ],
)
def test_a_batch_reads_what_is_left_of_its_range(
    reads: Reads, start: int, end: int, left: list[int], isolation_level: str
) -> None:
    rows = reads.batch(
        TOPIC,
        startingOffsets=json.dumps({TOPIC: {"0": start}}),
        endingOffsets=json.dumps({TOPIC: {"0": end}}),
        minPartitions=3,
        **{"kafka.isolation.level": isolation_level},
    )
    assert numbers(rows) == left


def test_a_stream_goes_on_after_micro_batches_that_end_in_holes(reads: Reads) -> None:
    batches = reads.available(TOPIC, startingOffsets="earliest", maxOffsetsPerTrigger=30)
    assert batches == [[], [], [], LEFT]
