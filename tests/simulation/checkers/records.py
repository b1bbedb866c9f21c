"""Readers of committed records see every record of a committed transaction once, and no other.

They also see each input record processed exactly once: what the offsets say was processed is
what the output has.
"""

from collections import Counter
from typing import Any

from tests.simulation.events import (
    TopicPartition,
    TransactionBegan,
    TransactionEnded,
    Violation,
)
from tests.simulation.node import Node

from barnabas.replication.partition import READ_COMMITTED
from barnabas.wire.records.batch import iterate_batches
from barnabas.wire.records.read import read_records

MAX_BYTES = 1 << 20


class Records:
    """Reads along, as a consumer of the output would."""

    def __init__(self, node: Node, outputs: list[TopicPartition]) -> None:
        self._node = node
        self._positions = dict.fromkeys(outputs, 0)
        self._inputs: dict[str, tuple[tuple[int, int], ...]] = {}
        self._outcomes: dict[str, bool] = {}
        self.seen: Counter[tuple[int, int]] = Counter()
        """How often each input record is in the output."""
        self._seen_of: dict[str, Counter[tuple[int, int]]] = {}

    def see(self, event: Any, now_ms: int) -> None:
        match event:
            case TransactionBegan(tag, inputs):
                self._inputs[tag] = inputs
            case TransactionEnded(tag, committed):
                self._outcomes[tag] = committed
                if not committed and tag in self._seen_of:
                    raise Violation(f"{tag} was aborted and can be read")

    def read_on(self) -> None:
        """Take in what has become readable."""
        if not self._node.is_up:
            return
        for place in self._positions:
            for value in self._read(place):
                self._take(value, place)

    def check_all(self, processed: dict[int, int]) -> None:
        """By input partition the offset that is committed; everything has ended."""
        self.read_on()
        for tag, inputs in self._inputs.items():
            seen = self._seen_of.get(tag)
            if seen is not None and set(seen) != set(inputs):
                raise Violation(f"of {tag} {sorted(seen)} can be read, it wrote {inputs}")
            if self._outcomes.get(tag) and seen is None:
                raise Violation(f"{tag} was committed and cannot be read")
        expected = {(index, each) for index, end in processed.items() for each in range(end)}
        if set(self.seen) != expected:
            raise Violation(
                f"processed but not in the output: {sorted(expected - set(self.seen))}, "
                f"in the output but not processed: {sorted(set(self.seen) - expected)}"
            )

    def _take(self, value: str, place: TopicPartition) -> None:
        source, tag = value.split()
        index, offset = map(int, source.split(":"))
        if self._outcomes.get(tag) is False:
            raise Violation(f"{value} in {place} was aborted and can be read")
        self._seen_of.setdefault(tag, Counter())[index, offset] += 1
        self.seen[index, offset] += 1
        if self.seen[index, offset] > 1:
            raise Violation(f"input {index}:{offset} is in the output twice, {place} has {value}")

    def _read(self, place: TopicPartition) -> list[str]:
        partition = self._node.partition(*place)
        position = self._positions[place]
        if not partition.is_leader or position >= partition.last_stable_offset:
            return []
        fetched = partition.fetch(position, MAX_BYTES, isolation=READ_COMMITTED)
        if fetched.records is None:
            return []
        values, self._positions[place] = without_aborted(
            fetched.records.read(), fetched.aborted_transactions or [], position
        )
        return values


def without_aborted(
    chunk: bytes, aborted: list[tuple[int, int]], position: int
) -> tuple[list[str], int]:
    """The values that a reader of committed records is given, and where to read on."""
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
