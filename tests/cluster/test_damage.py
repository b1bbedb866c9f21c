"""Log files that are damaged while the broker is down: it truncates to the last valid batch."""

import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from tests.cluster.numbered_records import read_numbers
from tests.conformance.brokers import Broker, BrokerProcess, PeerBroker

BATCHES = 40
RECORDS_IN_BATCH = 25
PAST_THE_CRC = 21

Damage = Callable[[Path, random.Random], None]


class Batch(NamedTuple):
    position: int
    end: int
    next_offset: int


def append_garbage(log: Path, rng: random.Random) -> None:
    with log.open("ab") as file:
        file.write(rng.randbytes(rng.randrange(1, 5000)))


def append_zeros(log: Path, rng: random.Random) -> None:
    with log.open("ab") as file:
        file.write(bytes(rng.randrange(1, 100_000)))


def cut_inside_a_batch(log: Path, rng: random.Random) -> None:
    with log.open("r+b") as file:
        file.truncate(position_in_second_half(log, rng, 1))


def overwrite_with_zeros(log: Path, rng: random.Random) -> None:
    position, size = position_in_second_half(log, rng, 1), log.stat().st_size
    with log.open("r+b") as file:
        file.seek(position)
        file.write(bytes(size - position))


def flip_a_bit(log: Path, rng: random.Random) -> None:
    contents = bytearray(log.read_bytes())
    contents[position_in_second_half(log, rng, PAST_THE_CRC)] ^= 1 << rng.randrange(8)
    log.write_bytes(contents)


def remove_the_indexes(log: Path, _: random.Random) -> None:
    log.with_suffix(".index").unlink(missing_ok=True)
    log.with_suffix(".timeindex").unlink(missing_ok=True)


def scramble_the_indexes(log: Path, rng: random.Random) -> None:
    log.with_suffix(".index").write_bytes(rng.randbytes(8 * 50))
    log.with_suffix(".timeindex").write_bytes(rng.randbytes(12 * 50))


DAMAGES: list[Damage] = [
    append_garbage,
    append_zeros,
    cut_inside_a_batch,
    overwrite_with_zeros,
    flip_a_bit,
    remove_the_indexes,
    scramble_the_indexes,
]


@dataclass(slots=True, frozen=True)
class RecoveredBroker:
    """A broker after a restart on damaged files, and the number of intact records by topic."""

    broker: Broker
    intact: dict[str, int]
    log_after_restart: str


@pytest.fixture(
    params=[
        pytest.param(BrokerProcess, id="barnabas"),
        pytest.param(PeerBroker, id="kafka", marks=pytest.mark.peer),
    ],
    scope="module",
)
def recovered(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RecoveredBroker]:
    broker: Broker = request.param(tmp_path_factory.mktemp("damaged"))
    broker.start()
    for damage in DAMAGES:
        write(broker.bootstrap, damage.__name__, range(BATCHES * RECORDS_IN_BATCH))
    broker.kill()
    intact = {}
    for damage in DAMAGES:
        topic = damage.__name__
        log = broker.data / f"{topic}-0" / f"{0:020}.log"
        written = log.read_bytes()
        damage(log, random.Random(topic))
        intact[topic] = count_intact_records(written, log.read_bytes())
    log_size_before = len(broker.log_text())
    broker.start()
    yield RecoveredBroker(broker, intact, broker.log_text()[log_size_before:])
    broker.kill()


@pytest.mark.parametrize("topic", [damage.__name__ for damage in DAMAGES])
def test_a_damaged_log_is_truncated_to_its_last_valid_batch(
    recovered: RecoveredBroker, topic: str
) -> None:
    bootstrap, intact = recovered.broker.bootstrap, recovered.intact[topic]
    assert read_numbers(bootstrap, topic, 0) == list(range(intact))
    write(bootstrap, topic, range(intact, intact + 5))
    assert read_numbers(bootstrap, topic, 0) == list(range(intact + 5))


@pytest.mark.parametrize("topic", [damage.__name__ for damage in DAMAGES[:5]])
def test_the_truncation_is_logged(recovered: RecoveredBroker, topic: str) -> None:
    assert f"{topic}-0" in recovered.log_after_restart


def write(bootstrap: str, topic: str, numbers: range) -> None:
    """Writes numbered records in batches of a known size, each flushed."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1000})
    for first in range(0, len(numbers), RECORDS_IN_BATCH):
        for number in numbers[first : first + RECORDS_IN_BATCH]:
            producer.produce(topic, b"%d " % number + bytes(300), partition=0)
        assert producer.flush(30) == 0, "not delivered in time"


def position_in_second_half(log: Path, rng: random.Random, first_byte: int) -> int:
    """Returns a random position inside a batch, at least `first_byte` bytes from its start."""
    contents = log.read_bytes()
    later = [batch for batch in batches(contents) if batch.position > len(contents) // 2]
    batch = rng.choice(later)
    return rng.randrange(batch.position + first_byte, batch.end)


def count_intact_records(written: bytes, damaged: bytes) -> int:
    """Returns the number of records in the valid batches before the damage."""
    count = 0
    for batch in batches(written):
        if damaged[: batch.end] != written[: batch.end]:
            break
        count = batch.next_offset
    return count


def batches(contents: bytes) -> list[Batch]:
    result, position = [], 0
    while position < len(contents):
        base_offset, length = struct.unpack_from(">qi", contents, position)
        (last_offset_delta,) = struct.unpack_from(">i", contents, position + 23)
        end = position + 12 + length
        result.append(Batch(position, end, base_offset + last_offset_delta + 1))
        position = end
    return result
