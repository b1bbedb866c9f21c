"""What a log knows of the producers that write to it: sequences, epochs and transactions.

An idempotent producer numbers its records. The log keeps, for each producer, its epoch and its
last five batches: a batch that is among them is a retry and is answered with the offsets it
already has, the next in sequence is appended, anything else is refused. The same state says
which transactions are open, and so how far a reader of committed records may go.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.log.producers.verification import MAX_PENDING_VERIFICATIONS, VerificationGuard
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    MAX_SEQUENCE,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Readable,
)
from barnabas.wire.records.control import EndTransactionMarker, read_marker
from barnabas.wire.records.read import read_records

NO_TRANSACTION = -1

EPOCH_BUMP_TRANSACTION_VERSION = 2
"""The transaction version from which on every end bumps the epoch (KIP-890): so each transaction
has an epoch of its own."""

_BATCHES_KEPT = 5


class BatchMetadata(NamedTuple):
    """A batch as a retry of it is recognised and answered."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class ProducerStateEntry:
    """One producer's state. `batches` are all of the current epoch, oldest first."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "next_sequence",
        "producer_id",
        "transaction_first_offset",
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
        self.transaction_first_offset = transaction_start
        self.next_sequence = 0
        self.batches: list[BatchMetadata] = []

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def find_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """The batch that this one repeats."""
        if header.producer_epoch == self.epoch:
            first, last = header.base_sequence, header.last_sequence
            for batch in self.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
        return None

    def has_open_transaction(self, epoch: int) -> bool:
        """Whether a transaction that batches of this epoch belong to is open."""
        return self.transaction_first_offset >= 0 and self.epoch == epoch

    def update_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.next_sequence = 0
            self.batches = []

    def add_batch(self, batch: BatchMetadata) -> None:
        """The batch was the last one of this epoch."""
        batches = self.batches
        if len(batches) == _BATCHES_KEPT:
            del batches[0]
        batches.append(batch)
        self.next_sequence = (batch.last_sequence + 1) & MAX_SEQUENCE


class ProducerStateManager:
    """The producers of one log, by id."""

    __slots__ = ("_completed", "_name", "_open", "_pending", "entries")

    def __init__(self, name: str, entries: Iterable[ProducerStateEntry] = ()) -> None:
        self._name = name
        self.entries: dict[int, ProducerStateEntry] = {}
        self._open: dict[int, int] = {}  # producer id -> first offset, ascending by offset
        self._completed: list[tuple[int, int]] = []  # first and last offset, by last offset
        self._pending: dict[int, VerificationGuard] = {}  # by producer id
        self.reset(entries)

    def reset(self, entries: Iterable[ProducerStateEntry]) -> None:
        """Starts again from the producers of a snapshot."""
        self.entries = {producer.producer_id: producer for producer in entries}
        started = [p for p in self.entries.values() if p.transaction_first_offset >= 0]
        started.sort(key=lambda producer: producer.transaction_first_offset)
        self._open = {producer.producer_id: producer.transaction_first_offset for producer in started}
        self._completed = []

    def check_batch(
        self,
        header: BatchHeader,
        *,
        from_client: bool,
        verification: VerificationGuard | None = None,
        must_verify: bool = False,
    ) -> BatchMetadata | None:
        """Whether the batch may be appended: None if so, the first copy if it is a retry.

        A coordinator's own batches have no sequence numbers, and it verifies them itself.
        """
        producer = self.entries.get(header.producer_id)
        if (
            producer is not None
            and header.base_sequence == producer.next_sequence
            and header.producer_epoch == producer.epoch
            and (producer.transaction_first_offset >= 0) is (header.attributes & TRANSACTIONAL_BIT != 0)
            and not self._pending
        ):
            return None  # as it nearly always is
        if from_client:
            repeated = producer.find_duplicate(header) if producer is not None else None
            if repeated is not None:
                return repeated
            if must_verify and header.is_transactional:
                self.check_verified(header.producer_id, header.producer_epoch, verification)
        if producer is not None and header.producer_epoch < producer.epoch:
            raise self._fenced(producer, header.producer_epoch)
        if from_client:
            self._check_order(producer, header)
        if producer is not None and producer.transaction_first_offset >= 0 and not header.is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._name}: producer {producer.producer_id} wrote outside its transaction "
                f"that is open since offset {producer.transaction_first_offset}.",
            )
        return None

    def check_marker(
        self, header: BatchHeader, marker: EndTransactionMarker, transaction_version: int = 0
    ) -> None:
        """Whether the end of a transaction comes from who may decide it."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            return
        epoch = header.producer_epoch
        # A marker that is written again finds its own epoch, and nothing open.
        if epoch < producer.epoch or (
            transaction_version >= EPOCH_BUMP_TRANSACTION_VERSION and producer.has_open_transaction(epoch)
        ):
            raise self._fenced(producer, header.producer_epoch)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{self._name}: the marker for producer {producer.producer_id} is of coordinator "
                f"epoch {marker.coordinator_epoch}, the current one is "
                f"{producer.coordinator_epoch}.",
            )

    def start_batch_verification(self, header: BatchHeader, *, from_zero: bool, now_ms: int) -> VerificationGuard | None:
        """What the batch, once verified, is to be appended with; None if its transaction is open.

        `from_zero` says that the batch comes from a producer with an epoch for each transaction.
        """
        return self.start_verification(
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            from_zero=from_zero,
            now_ms=now_ms,
        )

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, *, from_zero: bool, now_ms: int
    ) -> VerificationGuard | None:
        """The same, for a batch that is yet to be made.

        KafkaError for a zombie: what it waits for must not hold up who has replaced it.
        """
        producer = self.entries.get(producer_id)
        if producer is not None:
            if producer.has_open_transaction(epoch):
                return None
            if epoch < producer.epoch:
                raise self._fenced(producer, epoch)
        pending = self._pending
        verification = pending.get(producer_id)
        if verification is not None:
            verification.cover(epoch, sequence)
            return verification
        if len(pending) == MAX_PENDING_VERIFICATIONS:
            del pending[next(iter(pending))]
        verification = VerificationGuard(epoch, sequence, from_zero, now_ms)
        pending[producer_id] = verification
        return verification

    def check_verified(
        self, producer_id: int, epoch: int, verification: VerificationGuard | None
    ) -> None:
        """KafkaError unless the transaction is open, or may be opened by what was verified."""
        if self._has_open(producer_id, epoch):
            return
        if verification is None or verification is not self._pending.get(producer_id):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._name}: the transaction of producer {producer_id} that the batch "
                "belongs to is not under way here.",
            )

    def on_batch_appended(
        self, header: BatchHeader, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        """The batch is in the log."""
        producer_id = header.producer_id
        if self._pending:
            self._pending.pop(producer_id, None)
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = ProducerStateEntry(producer_id)
        if producer.epoch != header.producer_epoch:
            producer.update_epoch(header.producer_epoch)
        sequences = header.base_sequence, header.last_sequence
        # What the constructor does, without its second look at the number of fields.
        producer.add_batch(
            tuple.__new__(BatchMetadata, (*sequences, first_offset, last_offset, timestamp))
        )
        producer.last_timestamp = timestamp
        if producer.transaction_first_offset < 0 and header.attributes & TRANSACTIONAL_BIT:
            producer.transaction_first_offset = first_offset
            self._open[producer_id] = first_offset

    def restore_earlier_batch(self, header: BatchHeader) -> None:
        """The batch is in the log, before the last one of its producer that is known."""
        producer = self.entries.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch or not producer.batches:
            return
        batches = producer.batches
        if header.last_offset < batches[-1].first_offset:
            sequences = header.base_sequence, header.last_sequence
            offsets = header.base_offset, header.last_offset
            batches.insert(-1, BatchMetadata(*sequences, *offsets, header.max_timestamp))
            del batches[:-_BATCHES_KEPT]

    def undo_from(self, offset: int, batches: Sequence[BatchHeader]) -> None:
        """All that a producer wrote from `offset` on is gone; `batches` are its last before."""
        last = batches[-1]
        producer = self.entries[last.producer_id]
        # What is known of before the cut counts, even if it stands too far off to be among them.
        known = [batch for batch in producer.batches if batch.last_offset < offset]
        if producer.epoch != last.producer_epoch:
            producer.update_epoch(last.producer_epoch)
            known = []
        found = [
            BatchMetadata(
                header.base_sequence,
                header.last_sequence,
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
            )
            for header in batches
            if header.producer_epoch == last.producer_epoch and not header.is_control
        ]
        producer.batches = []
        by_offset = {batch.last_offset: batch for batch in (*known, *found)}
        for end in sorted(by_offset):
            producer.add_batch(by_offset[end])
        producer.last_timestamp = last.max_timestamp
        if producer.transaction_first_offset >= offset:
            producer.transaction_first_offset = NO_TRANSACTION
            del self._open[producer.producer_id]
        self._pending.pop(producer.producer_id, None)

    def complete_transaction(
        self, header: BatchHeader, marker: EndTransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """The marker is in the log at `offset`; what it aborted, if it aborted anything."""
        producer_id = header.producer_id
        self._pending.pop(producer_id, None)
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = ProducerStateEntry(producer_id)
        producer.update_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset, producer.transaction_first_offset = producer.transaction_first_offset, NO_TRANSACTION
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
        self.on_high_watermark_updated(high_watermark)
        stable = high_watermark
        if self._open:
            stable = min(stable, next(iter(self._open.values())))
        if self._completed:
            stable = min(stable, min(first_offset for first_offset, _ in self._completed))
        return stable

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """The ends of transactions below the high watermark need not be kept in mind."""
        completed = self._completed
        count = 0
        for _, last_offset in completed:
            if last_offset >= high_watermark:
                break
            count += 1
        del completed[:count]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Forgets the producers that were silent for too long and have nothing open."""
        for producer_id, verification in tuple(self._pending.items()):
            if now_ms - verification.since_ms > expiration_ms:
                del self._pending[producer_id]
        silent = [
            producer_id
            for producer_id, producer in self.entries.items()
            if producer.transaction_first_offset < 0 and now_ms - producer.last_timestamp > expiration_ms
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)

    def _has_open(self, producer_id: int, epoch: int) -> bool:
        producer = self.entries.get(producer_id)
        return producer is not None and producer.has_open_transaction(epoch)

    def _check_order(self, producer: ProducerStateEntry | None, header: BatchHeader) -> None:
        """A producer that is not known here may begin anywhere, but not before its own batches
        that wait to be verified."""
        sequence = header.base_sequence
        verification = self._pending.get(header.producer_id)
        if producer is None:
            in_order = True
        elif header.producer_epoch == producer.epoch:
            in_order = sequence == producer.next_sequence
        else:
            in_order = sequence == 0
        if in_order and verification is not None:
            is_first = producer is None or not producer.batches
            in_order = sequence <= (
                0 if is_first and verification.from_zero else verification.lowest_sequence
            )
        if not in_order:
            last = "nothing" if producer is None else f"{producer.last_sequence}"
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{self._name}: producer {header.producer_id} sent sequence {sequence} of epoch "
                f"{header.producer_epoch} after {last}.",
            )

    def _fenced(self, producer: ProducerStateEntry, epoch: int) -> KafkaError:
        return KafkaError(
            ErrorCode.INVALID_PRODUCER_EPOCH,
            f"{self._name}: producer {producer.producer_id} wrote with epoch {epoch}, which epoch "
            f"{producer.epoch} has replaced.",
        )


def read_end_marker(batch: Readable) -> EndTransactionMarker | None:
    """The end of a transaction that a control batch says; None if it says something else."""
    records = read_records(batch)
    return read_marker(records[0]) if records else None
