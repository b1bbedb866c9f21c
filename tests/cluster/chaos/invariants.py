"""Invariants of a cluster after faults: each function yields the violations."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.cluster.chaos.observations import (
    PARTITIONS,
    ObservedRecord,
    Outcome,
    PartitionKey,
)
from tests.cluster.chaos.readers import Reader
from tests.cluster.chaos.writers import (
    IdempotentWriter,
    TransactionalWriter,
    Writer,
)
from tests.cluster.node import ProcessNode

Log = Mapping[PartitionKey, Sequence[ObservedRecord]]
MAX_EXAMPLES = 5


def find_lost_records(writers: Sequence[Writer], everything: Log) -> Iterator[str]:
    """Acknowledged records are at their offsets, unchanged."""
    by_offset = {
        topic_partition: {observed.offset: observed for observed in log}
        for topic_partition, log in everything.items()
    }
    for writer in writers:
        for acknowledgement in writer.acknowledged:
            record = by_offset[writer.topic, acknowledgement.partition].get(acknowledgement.offset)
            if (
                record is None
                or record.checksum != acknowledgement.checksum
                or record.writer != writer.name
            ):
                yield (
                    f"{writer.name}: offset {acknowledgement.offset} of {writer.topic}-"
                    f"{acknowledgement.partition} was acknowledged, and now has {record}"
                )


def find_duplicates_and_gaps(writers: Sequence[IdempotentWriter], everything: Log) -> Iterator[str]:
    """All written records are in order and once, up to the failure of a writer."""
    for writer in writers:
        for partition in range(PARTITIONS):
            log = everything[writer.topic, partition]
            numbers = [observed.numbers[0] for observed in log if observed.writer == writer.name]
            expected = len(numbers) if writer.failure else writer.written
            if numbers != list(range(expected)):
                yield (
                    f"{writer.name}: {writer.written} records were written to"
                    f" {writer.topic}-{partition}; {first_difference(numbers, writer.written)}"
                )


def find_wrong_reads(readers: Sequence[Reader], everything: Log, committed: Log) -> Iterator[str]:
    """Readers have read exactly the records of the log, each once."""
    for reader in readers:
        final = committed if reader.isolation == "read_committed" else everything
        for topic_partition, read in reader.observed.items():
            if list(read) == list(final[topic_partition]):
                continue
            by_offset = {observed.offset: observed for observed in final[topic_partition]}
            wrong = [observed for observed in read if by_offset.get(observed.offset) != observed]
            missed = len(by_offset) - len({observed.offset for observed in read})
            yield (
                f"{reader.name}: {topic_partition} was read with {len(wrong)} wrong records"
                f", such as {wrong[:MAX_EXAMPLES]}; {missed} were not read; {len(read)} in all"
            )


def find_partial_transactions(
    writers: Sequence[TransactionalWriter], committed: Log
) -> Iterator[str]:
    """Committed transactions are complete, aborted ones absent, unknown ones either."""
    for writer in writers:
        indexes_by_transaction: dict[int, list[int]] = defaultdict(list)
        for (topic, partition), log in committed.items():
            own = [
                observed.numbers
                for observed in log
                if (topic, observed.writer) == (writer.topic, writer.name)
            ]
            if own != sorted(own):
                yield f"{writer.name}: out of order in {topic}-{partition}"
            for number, index, _ in own:
                indexes_by_transaction[number].append(index)
        for transaction in writer.transactions:
            indexes = sorted(indexes_by_transaction[transaction.number])
            is_whole, is_absent = indexes == list(range(transaction.records)), not indexes
            if not {
                Outcome.COMMITTED: is_whole,
                Outcome.ABORTED: is_absent,
                Outcome.UNKNOWN: is_whole or is_absent,
            }[transaction.outcome]:
                yield (
                    f"{writer.name}: transaction {transaction.number} with {transaction.records} "
                    f"records was {transaction.outcome.value}, and {indexes} can be read"
                )


def find_different_replicas(
    nodes: Sequence[ProcessNode], topic_partitions: Sequence[PartitionKey]
) -> Iterator[str]:
    """Replicas of stopped nodes are equal, byte for byte."""
    for topic, partition in topic_partitions:
        replicas = {
            node.node_id: records_on_disk(node.log_dir / f"{topic}-{partition}") for node in nodes
        }
        if len(set(replicas.values())) > 1:
            sizes = {node_id: len(copy) for node_id, copy in replicas.items()}
            yield f"the copies of {topic}-{partition} differ; bytes by node: {sizes}"


def records_on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))


def first_difference(numbers: Sequence[int], count: int) -> str:
    for index, number in enumerate(numbers):
        if number != index:
            return f"{number} instead of {index}"
    return f"{len(numbers)} are there, the last is {numbers[-1] if numbers else 'none'} of {count}"
