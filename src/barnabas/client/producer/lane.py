"""What was taken out of the accumulator for one partition, in the order it has to arrive.

The invariant: sequences that were given out under one identity are without a gap, and a batch
is given another one only if the broker has certainly not appended it.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from barnabas.client.producer._batch import Batch
from barnabas.client.producer.sealing import NOBODY, Identity, Seal
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.records.batch import MAX_SEQUENCE, NO_SEQUENCE

if TYPE_CHECKING:
    from barnabas.client.producer.dispatch import Outcome

MAX_UNDER_WAY = 5
"""Of one partition: brokers remember so many batches to know duplicates by."""


@dataclass(slots=True, eq=False)
class Outbound:
    """A batch between its being taken and its being acknowledged or given up."""

    batch: Batch
    number: int  # the order in a lane
    room: int = 1 << 30  # numbers up to the next one: those of its parts, if it has to be split
    sequence: int = NO_SEQUENCE
    attempts: int = 0
    may_be_appended: bool = False  # an attempt has ended without saying
    is_reported: bool = False  # given up while it is under way; the answer changes nothing

    def __lt__(self, other: "Outbound") -> bool:
        return self.number < other.number


@dataclass(slots=True, eq=False)
class Lane:
    """One partition: at most `MAX_UNDER_WAY` batches are under way, all to the same node."""

    place: TopicPartitionTuple
    waiting: list[Outbound] = field(default_factory=list)  # to be sent again, in order
    under_way: deque[Outbound] = field(default_factory=deque)
    node_id: int = -1  # where they are under way to
    identity: Identity = NOBODY
    next_sequence: int = 0
    next_number: int = 0
    failures: int = 0  # in a row
    resume_s: float = 0.0
    is_established: bool = False  # the leader knows the present identity
    has_gap: bool = False  # what was given up may be missing: no new sequence can follow it
    is_refused: bool = False  # the broker misses what comes before: nothing of this is appended
    blocked_since_s: float | None = None  # it has batches that its leader takes no more of
    ended: list[tuple[int, "Outcome"]] = field(default_factory=list)  # and not yet to be reported

    @property
    def is_idle(self) -> bool:
        return not self.waiting and not self.under_way

    @property
    def has_room(self) -> bool:
        """Whether a new one may follow those that are under way.

        A broker that knows nothing of a producer takes any sequence for its first: until it does,
        a second batch could arrive in place of the first. And it knows the last five batches for
        duplicates: nothing new goes before one that goes again has its outcome.
        """
        if self.waiting or any(outbound.attempts > 1 for outbound in self.under_way):
            return False
        return len(self.under_way) < (MAX_UNDER_WAY if self.is_established else 1)

    @property
    def needs_new_epoch(self) -> bool:
        """No sequence of the present epoch is of use any more."""
        if self.under_way:
            return False
        return self.is_refused or (self.has_gap and not self.waiting)

    def unresolved(self) -> Iterator[Outbound]:
        yield from self.under_way
        yield from self.waiting

    def is_first(self, outbound: Outbound) -> bool:
        """Whether nothing that came before it is without an outcome."""
        return all(each.number >= outbound.number for each in self.unresolved())

    def take(self, batch: Batch) -> Outbound:
        outbound = Outbound(batch, self.next_number)
        self.next_number += outbound.room
        return outbound

    def enter(self, outbound: Outbound, identity: Identity, seal: Seal) -> None:
        """Give a batch its place in the sequence, and close it."""
        if identity is NOBODY:
            if not outbound.batch.is_sealed:
                seal.put(outbound.batch)
            return
        outbound.sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + outbound.batch.record_count) & MAX_SEQUENCE
        seal.put(outbound.batch, identity, outbound.sequence)

    def begin(self, identity: Identity, seal: Seal) -> None:
        """Count from 0 under another identity; nothing may be under way."""
        self.identity = identity
        self.next_sequence = 0
        self.has_gap = self.is_refused = self.is_established = False
        for outbound in self.waiting:
            self.enter(outbound, identity, seal)

    def park(self, outbound: Outbound, outcome: "Outcome") -> None:
        """It is over, but what came before it may not be."""
        self.ended.append((outbound.number, outcome))

    def reportable(self) -> list["Outcome"]:
        """Of those that are over: the ones with nothing before them that is not."""
        open_ = [each.number for each in self.unresolved() if not each.is_reported]
        first = min(open_, default=self.next_number)
        ready = sorted((each for each in self.ended if each[0] < first), key=itemgetter(0))
        self.ended = [each for each in self.ended if each[0] >= first]
        return [outcome for _, outcome in ready]

    def put_back(self, outbound: Outbound) -> None:
        """To be sent again, in its order."""
        insort(self.waiting, outbound)

    def replace(self, outbound: Outbound, parts: list[Batch], seal: Seal) -> None:
        """Put the parts of a batch in its place: they share out its sequences."""
        sequence = outbound.sequence
        room = outbound.room // len(parts)
        for index, part in enumerate(parts):
            number = outbound.number + index * room
            each = Outbound(part, number, room, sequence, outbound.attempts)
            seal.put(part, self.identity, sequence)
            if sequence != NO_SEQUENCE:
                sequence = (sequence + part.record_count) & MAX_SEQUENCE
            insort(self.waiting, each)
