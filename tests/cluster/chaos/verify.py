"""What must be true of a cluster after whatever happened to it."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.cluster.chaos.notes import PARTITIONS, Outcome, Place, Seen
from tests.cluster.chaos.readers import Reader
from tests.cluster.chaos.writers import (
    IdempotentWriter,
    TransactionalWriter,
    Writer,
)
from tests.cluster.node import ProcessNode

Log = Mapping[Place, Sequence[Seen]]
SHOWN = 5


def nothing_acknowledged_is_lost(writers: Sequence[Writer], everything: Log) -> Iterator[str]:
    """Each is where the cluster said it is, unchanged."""
    there = {place: {seen.offset: seen for seen in log} for place, log in everything.items()}
    for writer in writers:
        for each in writer.acknowledged:
            found = there[writer.topic, each.partition].get(each.offset)
            if found is None or found.checksum != each.checksum or found.writer != writer.name:
                yield (
                    f"{writer.name}: offset {each.offset} of {writer.topic}-{each.partition} was"
                    f" acknowledged, and now holds {found}"
                )


def each_is_there_once_and_in_order(
    writers: Sequence[IdempotentWriter], everything: Log
) -> Iterator[str]:
    """All that was ever written: none was given up, but by a writer that failed."""
    for writer in writers:
        for partition in range(PARTITIONS):
            log = everything[writer.topic, partition]
            numbers = [seen.numbers[0] for seen in log if seen.writer == writer.name]
            due = len(numbers) if writer.failure else writer.written
            if numbers != list(range(due)):
                yield (
                    f"{writer.name}: {writer.written} records were written to"
                    f" {writer.topic}-{partition}; {first_difference(numbers, writer.written)}"
                )


def nobody_was_shown_what_is_not_there(
    readers: Sequence[Reader], everything: Log, committed: Log
) -> Iterator[str]:
    """Whoever followed the log saw exactly what is in it now, each offset once."""
    for reader in readers:
        final = committed if reader.isolation == "read_committed" else everything
        for place, shown in reader.seen.items():
            if list(shown) == list(final[place]):
                continue
            there = {seen.offset: seen for seen in final[place]}
            wrong = [seen for seen in shown if there.get(seen.offset) != seen]
            missed = len(there) - len({seen.offset for seen in shown})
            yield (
                f"{reader.name}: {place} was shown with {len(wrong)} records that are not there"
                f" now, such as {wrong[:SHOWN]}; {missed} were not shown; {len(shown)} in all"
            )


def transactions_are_whole(writers: Sequence[TransactionalWriter], committed: Log) -> Iterator[str]:
    """Committed ones wholly and in order, aborted ones not at all, unknown ones either way."""
    for writer in writers:
        found: dict[int, list[int]] = defaultdict(list)
        for (topic, partition), log in committed.items():
            own = [
                seen.numbers for seen in log if (topic, seen.writer) == (writer.topic, writer.name)
            ]
            if own != sorted(own):
                yield f"{writer.name}: out of order in {topic}-{partition}"
            for number, index, _ in own:
                found[number].append(index)
        for each in writer.transactions:
            indexes = sorted(found[each.number])
            is_whole, is_absent = indexes == list(range(each.records)), not indexes
            if not {
                Outcome.COMMITTED: is_whole,
                Outcome.ABORTED: is_absent,
                Outcome.UNKNOWN: is_whole or is_absent,
            }[each.outcome]:
                yield (
                    f"{writer.name}: transaction {each.number} of {each.records} records was"
                    f" {each.outcome.value}, and {indexes} can be read"
                )


def replicas_are_equal(nodes: Sequence[ProcessNode], places: Sequence[Place]) -> Iterator[str]:
    """Once all nodes have stopped: byte for byte."""
    for topic, partition in places:
        copies = {
            node.node_id: records_on_disk(node.log_dir / f"{topic}-{partition}") for node in nodes
        }
        if len(set(copies.values())) > 1:
            sizes = {node_id: len(copy) for node_id, copy in copies.items()}
            yield f"the copies of {topic}-{partition} differ; bytes by node: {sizes}"


def records_on_disk(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.glob("*.log")))


def first_difference(numbers: Sequence[int], count: int) -> str:
    for index, number in enumerate(numbers):
        if number != index:
            return f"where {index} is due there is {number}"
    return f"{len(numbers)} are there, the last is {numbers[-1] if numbers else 'none'} of {count}"
