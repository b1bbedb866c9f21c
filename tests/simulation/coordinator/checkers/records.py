"""A read_committed consumer sees every record of a committed transaction once, and no other.

It also sees every input record processed exactly once: the output has the input records below the
committed offsets.
"""

from collections import Counter
from typing import Any

from tests.simulation.coordinator.events import TopicPartition, TransactionBegan, TransactionEnded
from tests.simulation.coordinator.node import Node
from tests.simulation.world.events import Violation

from barnabas.replication.partition import READ_COMMITTED
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

MAX_BYTES = 1 << 20


class Records:
    """Reads the output as a read_committed consumer does."""

    def __init__(self, node: Node, outputs: list[TopicPartition]) -> None:
        self._node = node
        self._positions = dict.fromkeys(outputs, 0)
        self._inputs: dict[str, tuple[tuple[int, int], ...]] = {}
        self._outcomes: dict[str, bool] = {}
        self.seen: Counter[tuple[int, int]] = Counter()
        """How often an input record is in the output."""
        self._seen_of: dict[str, Counter[tuple[int, int]]] = {}

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case TransactionBegan(tag, inputs):
                self._inputs[tag] = inputs
            case TransactionEnded(tag, committed):
                self._outcomes[tag] = committed
                if not committed and tag in self._seen_of:
                    raise Violation(f"{tag} was aborted and can be read")

    def read_output(self) -> None:
        """Reads the records that have become stable."""
        if not self._node.is_up:
            return
        for topic_partition in self._positions:
            for value in self._read(topic_partition):
                self._add(value, topic_partition)

    def check_all(self, processed: dict[int, int]) -> None:
        """Checks the output against the committed offsets, when all transactions have ended."""
        self.read_output()
        for tag, inputs in self._inputs.items():
            seen = self._seen_of.get(tag)
            if seen is not None and set(seen) != set(inputs):
                raise Violation(f"of {tag} {sorted(seen)} can be read, it wrote {inputs}")
            if self._outcomes.get(tag) and seen is None:
                raise Violation(f"{tag} was committed and cannot be read")
        expected = {(index, offset) for index, end in processed.items() for offset in range(end)}
        if set(self.seen) != expected:
            raise Violation(
                f"processed but not in the output: {sorted(expected - set(self.seen))}, "
                f"in the output but not processed: {sorted(set(self.seen) - expected)}"
            )

    def _add(self, value: str, topic_partition: TopicPartition) -> None:
        source, tag = value.split()
        index, offset = map(int, source.split(":"))
        if self._outcomes.get(tag) is False:
            raise Violation(f"{value} in {topic_partition} was aborted and can be read")
        self._seen_of.setdefault(tag, Counter())[index, offset] += 1
        self.seen[index, offset] += 1
        if self.seen[index, offset] > 1:
            raise Violation(
                f"input {index}:{offset} is in the output twice, {topic_partition} has {value}"
            )

    def _read(self, topic_partition: TopicPartition) -> list[str]:
        partition = self._node.partition(*topic_partition)
        position = self._positions[topic_partition]
        if not partition.is_leader or position >= partition.last_stable_offset:
            return []
        fetched = partition.fetch(position, MAX_BYTES, isolation=READ_COMMITTED)
        if fetched.records is None:
            return []
        values, self._positions[topic_partition] = without_aborted(
            fetched.records.read(), fetched.aborted_transactions or [], position
        )
        return values


def without_aborted(
    chunk: bytes, aborted: list[tuple[int, int]], position: int
) -> tuple[list[str], int]:
    """Returns the values that a read_committed consumer gets, and the next offset."""
    starts = sorted(aborted, key=lambda entry: entry[1])
    skipped: set[int] = set()
    values: list[str] = []
    for at, header in iterate_batches(chunk):
        while starts and starts[0][1] <= header.last_offset:
            skipped.add(starts.pop(0)[0])
        if header.is_control:
            skipped.discard(header.producer_id)
        elif header.producer_id not in skipped:
            values += [
                (record.value or b"").decode()
                for record in read_records(chunk, at)
                if record.offset >= position
            ]
        position = max(position, header.next_offset)
    return values, position
