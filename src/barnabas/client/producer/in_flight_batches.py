"""The batches of one partition between the accumulator and their outcome, in sequence order.

Invariant: the sequences that were assigned under one producer id and epoch have no gap, and a batch
gets another sequence only if the broker has certainly not appended it.
"""

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter

from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.producer.batch_finisher import BatchFinisher, ProducerIdAndEpoch
from barnabas.client.values import PartitionKey
from barnabas.wire.records.batch import MAX_SEQUENCE, NO_SEQUENCE

MAX_IN_FLIGHT = 5
"""Batches of one partition: a broker recognizes so many as duplicates."""

_NUMBER = attrgetter("number")


@dataclass(slots=True, eq=False)
class InFlightBatches:
    """One partition: at most `MAX_IN_FLIGHT` batches are in flight, all to the same node."""

    topic_partition: PartitionKey
    retrying: list[ProducerBatch] = field(default_factory=list)  # to be sent again, in order
    in_flight: deque[ProducerBatch] = field(default_factory=deque)
    node_id: int = -1  # of the requests in flight
    producer: ProducerIdAndEpoch = ProducerIdAndEpoch.NONE
    next_sequence: int = 0
    next_number: int = 0
    failures: int = 0  # in a row
    retry_at_s: float = 0.0
    is_established: bool = False  # the leader knows the present producer id and epoch
    has_gap: bool = False  # a batch failed: no new sequence can follow it
    is_out_of_order: bool = False  # the broker lacks earlier batches: none of these is appended
    blocked_since_s: float | None = None  # it has batches that its leader does not accept
    done: list[ProducerBatch] = field(default_factory=list)  # behind one without an outcome

    @property
    def is_idle(self) -> bool:
        return not self.retrying and not self.in_flight

    @property
    def can_send_new(self) -> bool:
        """Whether a new batch may follow those in flight.

        A broker without state of a producer accepts any sequence as its first: until it has some,
        a second batch could arrive in place of the first. And it recognizes the last five batches
        as duplicates: nothing new is sent before a retried batch has its outcome.
        """
        if self.retrying or any(batch.attempts > 1 for batch in self.in_flight):
            return False
        return len(self.in_flight) < (MAX_IN_FLIGHT if self.is_established else 1)

    @property
    def needs_new_epoch(self) -> bool:
        """Whether no sequence of the present epoch can be used any more."""
        if self.in_flight:
            return False
        return self.is_out_of_order or (self.has_gap and not self.retrying)

    def unresolved(self) -> Iterator[ProducerBatch]:
        yield from self.in_flight
        yield from self.retrying

    def is_first(self, batch: ProducerBatch) -> bool:
        """Returns whether no earlier batch is without an outcome."""
        return all(other.number >= batch.number for other in self.unresolved())

    def add(self, batch: ProducerBatch, finisher: BatchFinisher) -> None:
        """Adds a new batch behind all others, with the next sequence."""
        batch.number = self.next_number
        self.next_number += batch.number_span
        self._assign_sequence(batch, finisher)

    def start_epoch(self, producer: ProducerIdAndEpoch, finisher: BatchFinisher) -> None:
        """Starts sequences at 0 under another epoch. Nothing may be in flight."""
        self.producer = producer
        self.next_sequence = 0
        self.has_gap = self.is_out_of_order = self.is_established = False
        for batch in self.retrying:
            self._assign_sequence(batch, finisher)

    def retry(self, batch: ProducerBatch) -> None:
        insort(self.retrying, batch, key=_NUMBER)

    def retry_in_parts(
        self, batch: ProducerBatch, parts: list[ProducerBatch], finisher: BatchFinisher
    ) -> None:
        """Retries a batch in smaller ones, which share its sequences."""
        sequence = batch.sequence
        span = batch.number_span // len(parts)
        for index, part in enumerate(parts):
            part.number = batch.number + index * span
            part.number_span = span
            part.sequence = sequence
            part.attempts = batch.attempts
            finisher.finish(part, self.producer, sequence)
            if sequence != NO_SEQUENCE:
                sequence = (sequence + part.record_count) & MAX_SEQUENCE
            self.retry(part)

    def take_reportable(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Adds a batch that is done, and takes out those with no unfinished batch before them."""
        self.done.append(batch)
        unfinished = [other.number for other in self.unresolved() if not other.is_done]
        first = min(unfinished, default=self.next_number)
        reportable = sorted((other for other in self.done if other.number < first), key=_NUMBER)
        self.done = [other for other in self.done if other.number >= first]
        return reportable

    def _assign_sequence(self, batch: ProducerBatch, finisher: BatchFinisher) -> None:
        if self.producer is ProducerIdAndEpoch.NONE:
            if not batch.is_closed:
                finisher.finish(batch)
            return
        batch.sequence = self.next_sequence
        self.next_sequence = (self.next_sequence + batch.record_count) & MAX_SEQUENCE
        finisher.finish(batch, self.producer, batch.sequence)
