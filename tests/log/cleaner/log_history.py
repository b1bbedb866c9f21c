"""Everything that was appended to a log, and what of it is committed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from barnabas.wire.records.record import Record

NO_PRODUCER = -1


class Outcome(Enum):
    """What became of the transaction of a batch; without one, it is committed."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    OPEN = "open"


@dataclass(slots=True, frozen=True)
class AppendedBatch:
    """A batch as it was appended; a marker has no records here."""

    base_offset: int
    count: int
    records: Sequence[Record] = ()
    producer_id: int = NO_PRODUCER
    epoch: int = -1
    sequence: int = -1
    transactional: bool = False
    marker: Outcome | None = None

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


@dataclass(slots=True)
class LogHistory:
    """The batches of a log in order."""

    batches: list[AppendedBatch] = field(default_factory=list)

    @property
    def end_offset(self) -> int:
        return self.batches[-1].next_offset if self.batches else 0

    def append(self, batch: AppendedBatch) -> None:
        assert batch.base_offset == self.end_offset
        self.batches.append(batch)

    def truncate(self, offset: int) -> None:
        """Forgets every batch that reaches the offset."""
        while self.end_offset > offset:
            self.batches.pop()

    def outcomes(self) -> Iterator[tuple[Record, Outcome]]:
        """Yields every record, with what became of its transaction."""
        ended: dict[int, Outcome] = {}  # by producer: how its transaction ends
        found: list[tuple[Record, Outcome]] = []
        for batch in reversed(self.batches):
            if batch.marker is not None:
                ended[batch.producer_id] = batch.marker
                continue
            outcome = Outcome.COMMITTED
            if batch.transactional:
                outcome = ended.get(batch.producer_id, Outcome.OPEN)
            found += [(record, outcome) for record in reversed(batch.records)]
        yield from reversed(found)

    def sequences(self) -> dict[int, tuple[int, int]]:
        """Returns epoch and last sequence of each producer."""
        return {
            batch.producer_id: (batch.epoch, batch.sequence + batch.count - 1)
            for batch in self.batches
            if batch.producer_id != NO_PRODUCER and batch.marker is None
        }

    def open_transactions(self) -> dict[int, int]:
        """Returns the first offset of each open transaction by its producer."""
        opened: dict[int, int] = {}
        for batch in self.batches:
            if batch.marker is not None:
                opened.pop(batch.producer_id, None)
            elif batch.transactional:
                opened.setdefault(batch.producer_id, batch.base_offset)
        return opened
