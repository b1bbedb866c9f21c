"""What a log knows of the producers that write to it: sequences, epochs and transactions.

An idempotent producer numbers its records. The log keeps, for each producer, its epoch and its
last five batches: a batch that is among them is a retry and is answered with the offsets it
already has, the next in sequence is appended, anything else is refused. The same state says
which transactions are open, and so how far a reader of committed records may go.
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.log.transaction_index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import MAX_SEQUENCE, NO_SEQUENCE, BatchHeader, Readable
from barnabas.wire.records.control import EndTransactionMarker, read_marker
from barnabas.wire.records.read import read_records

NO_PRODUCER_EPOCH = -1
NO_TRANSACTION = -1

_BATCHES_KEPT = 5


class AppendedBatch(NamedTuple):
    """A batch as a retry of it is recognised and answered."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer's state. `batches` are all of the current epoch, oldest first."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "transaction_start",
    )

    def __init__(
        self,
        producer_id: int,
        epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = -1,
        transaction_start: int = NO_TRANSACTION,
    ) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.transaction_start = transaction_start
        self.batches: list[AppendedBatch] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches = []


class Producers:
    """The producers of one log, by id."""

    __slots__ = ("_completed", "_name", "_open", "entries")

    def __init__(self, name: str, entries: Iterable[Producer] = ()) -> None:
        self._name = name
        self.entries: dict[int, Producer] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset, ascending by offset
        self._completed: list[tuple[int, int]] = []  # first and last offset, by last offset
        self.replace(entries)

    def replace(self, entries: Iterable[Producer]) -> None:
        """Starts again from the producers of a snapshot."""
        self.entries = {producer.producer_id: producer for producer in entries}
        started = [p for p in self.entries.values() if p.transaction_start >= 0]
        started.sort(key=lambda producer: producer.transaction_start)
        self._open = {producer.producer_id: producer.transaction_start for producer in started}
        self._completed = []

    def check(self, header: BatchHeader, *, from_client: bool) -> AppendedBatch | None:
        """Whether the batch may be appended: None if so, the first copy if it is a retry."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            return None
        if header.producer_epoch != producer.epoch:
            self._check_epoch(producer, header, from_client)
        elif from_client and header.base_sequence != (producer.last_sequence + 1) & MAX_SEQUENCE:
            return self._find_retried(producer, header)
        if producer.transaction_start >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._name}: producer {producer.producer_id} wrote outside its transaction "
                f"that is open since offset {producer.transaction_start}.",
            )
        return None

    def check_marker(self, header: BatchHeader, marker: EndTransactionMarker) -> None:
        """Whether the end of a transaction comes from who may decide it."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            return
        if header.producer_epoch < producer.epoch:
            raise self._fenced(producer, header)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{self._name}: the marker for producer {producer.producer_id} is of coordinator "
                f"epoch {marker.coordinator_epoch}, the current one is "
                f"{producer.coordinator_epoch}.",
            )

    def appended(
        self, header: BatchHeader, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        """The batch is in the log."""
        producer_id = header.producer_id
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = Producer(producer_id)
        if producer.epoch != header.producer_epoch:
            producer.enter_epoch(header.producer_epoch)
        batches = producer.batches
        if len(batches) == _BATCHES_KEPT:
            del batches[0]
        batches.append(
            AppendedBatch(
                header.base_sequence, header.last_sequence, first_offset, last_offset, timestamp
            )
        )
        producer.last_timestamp = timestamp
        if producer.transaction_start < 0 and header.is_transactional:
            producer.transaction_start = first_offset
            self._open[producer_id] = first_offset

    def ended(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """The marker is in the log at `offset`; what it aborted, if it aborted anything."""
        producer_id = header.producer_id
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = Producer(producer_id)
        producer.enter_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset, producer.transaction_start = producer.transaction_start, NO_TRANSACTION
        if first_offset < 0:
            return None
        self._open.pop(producer_id, None)
        self._completed.append((first_offset, offset))
        if marker.committed:
            return None
        stable = next(iter(self._open.values()), offset + 1)
        return AbortedTransaction(producer_id, first_offset, offset, stable)

    @property
    def first_undecided_offset(self) -> int | None:
        """Where the oldest open transaction begins."""
        return next(iter(self._open.values()), None)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where every transaction is decided, and its end known to enough replicas."""
        completed = self._completed
        if completed:
            replicated = 0
            for _, last_offset in completed:
                if last_offset >= high_watermark:
                    break
                replicated += 1
            del completed[:replicated]
        stable = high_watermark
        if self._open:
            stable = min(stable, next(iter(self._open.values())))
        if completed:
            stable = min(stable, min(first_offset for first_offset, _ in completed))
        return stable

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forgets the producers that were silent for too long and have nothing open."""
        silent = [
            producer_id
            for producer_id, producer in self.entries.items()
            if producer.transaction_start < 0 and now_ms - producer.last_timestamp > expiration_ms
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)

    def _find_retried(self, producer: Producer, header: BatchHeader) -> AppendedBatch:
        first, last = header.base_sequence, header.last_sequence
        for batch in producer.batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"{self._name}: producer {producer.producer_id} of epoch {producer.epoch} sent "
            f"sequence {first} after {producer.last_sequence}.",
        )

    def _check_epoch(self, producer: Producer, header: BatchHeader, from_client: bool) -> None:
        if header.producer_epoch < producer.epoch:
            raise self._fenced(producer, header)
        if from_client and header.base_sequence != 0 and producer.epoch != NO_PRODUCER_EPOCH:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{self._name}: producer {producer.producer_id} began epoch "
                f"{header.producer_epoch} with sequence {header.base_sequence} instead of 0.",
            )

    def _fenced(self, producer: Producer, header: BatchHeader) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{self._name}: producer {producer.producer_id} wrote with epoch "
            f"{header.producer_epoch}, which epoch {producer.epoch} has replaced.",
        )


def end_marker(batch: Readable) -> EndTransactionMarker | None:
    """The end of a transaction that a control batch says; None if it says something else."""
    records = read_records(batch)
    return read_marker(records[0]) if records else None
