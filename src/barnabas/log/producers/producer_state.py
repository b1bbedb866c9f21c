"""The state of the producers that write to a log: sequences, epochs and transactions.

An idempotent producer numbers its records. The log keeps the epoch and the last five batches of
each producer. A batch that is among them is a retry: it gets the offsets of the first copy. The
next batch in sequence is appended, any other is rejected. The same state has the open
transactions, and so the last stable offset.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from barnabas.log._append import NO_TRANSACTION, ProducerEntries, ProducerStateEntry
from barnabas.log.producers.batch_metadata import BatchMetadata
from barnabas.log.producers.verification import MAX_PENDING_VERIFICATIONS, VerificationGuard
from barnabas.log.segments.index import AbortedTransaction
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.batch import (
    TRANSACTIONAL_BIT,
    BatchHeader,
    Readable,
)
from barnabas.wire.records.control import EndTransactionMarker, read_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.validate import ValidBatch

AppendedBatch: TypeAlias = BatchHeader | ValidBatch
"""What the state takes of a batch; of one that another leader wrote there is only the header."""

EPOCH_BUMP_TRANSACTION_VERSION = 2
"""The transaction version from which on the end of a transaction bumps the epoch (KIP-890), so that
each transaction has an epoch of its own."""

_BATCHES_PER_PRODUCER = 5


class ProducerStateManager(ProducerEntries):
    """The producers of one log, by id."""

    __slots__ = ("_completed", "_name", "_open")

    def __init__(self, name: str, entries: Iterable[ProducerStateEntry] = ()) -> None:
        super().__init__()
        self._name = name
        self._open: dict[int, int] = {}  # producer id -> first offset, ascending by offset
        self._completed: list[tuple[int, int]] = []  # first and last offset, by last offset
        self.reset(entries)

    def reset(self, entries: Iterable[ProducerStateEntry]) -> None:
        """Replaces all state by the producers of a snapshot."""
        self.entries = {producer.producer_id: producer for producer in entries}
        started = [p for p in self.entries.values() if p.transaction_first_offset >= 0]
        started.sort(key=lambda producer: producer.transaction_first_offset)
        self._open = {
            producer.producer_id: producer.transaction_first_offset for producer in started
        }
        self._completed = []

    def check_batch(
        self,
        header: AppendedBatch,
        from_client: bool,
        verification: VerificationGuard | None = None,
        must_verify: bool = False,
    ) -> BatchMetadata | None:
        """Returns None if the batch may be appended, its first copy if it is a retry.

        Raises KafkaError if the batch is out of order or fenced. The batches of a coordinator have
        no sequence numbers, and the coordinator verifies them itself.
        """
        producer = self.entries.get(header.producer_id)
        if (
            producer is not None
            and header.base_sequence == producer.next_sequence
            and header.producer_epoch == producer.epoch
            and (producer.transaction_first_offset >= 0)
            is (header.attributes & TRANSACTIONAL_BIT != 0)
            and not self.pending_verifications
        ):
            return None  # the usual case
        if from_client:
            duplicate = producer.find_duplicate(header) if producer is not None else None
            if duplicate is not None:
                return duplicate
            if must_verify and header.is_transactional:
                self.check_verified(header.producer_id, header.producer_epoch, verification)
        if producer is not None and header.producer_epoch < producer.epoch:
            raise self._fenced(producer, header.producer_epoch)
        if from_client:
            self._check_order(producer, header)
        if (
            producer is not None
            and producer.transaction_first_offset >= 0
            and not header.is_transactional
        ):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._name}: producer {producer.producer_id} wrote outside its transaction "
                f"that is open since offset {producer.transaction_first_offset}.",
            )
        return None

    def check_marker(
        self, header: AppendedBatch, marker: EndTransactionMarker, transaction_version: int = 0
    ) -> None:
        """Raises KafkaError if the marker is fenced, by its producer epoch or coordinator epoch."""
        producer = self.entries.get(header.producer_id)
        if producer is None:
            return
        epoch = header.producer_epoch
        # A marker that is written again has the current epoch, and no transaction is open.
        if epoch < producer.epoch or (
            transaction_version >= EPOCH_BUMP_TRANSACTION_VERSION
            and producer.has_open_transaction(epoch)
        ):
            raise self._fenced(producer, header.producer_epoch)
        if marker.coordinator_epoch < producer.coordinator_epoch:
            raise KafkaError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"{self._name}: the marker for producer {producer.producer_id} is of coordinator "
                f"epoch {marker.coordinator_epoch}, the current one is "
                f"{producer.coordinator_epoch}.",
            )

    def start_batch_verification(
        self, header: BatchHeader, *, from_zero: bool, now_ms: int
    ) -> VerificationGuard | None:
        """Returns the guard to append the batch with; None if its transaction is open.

        `from_zero` says that the producer has an epoch of its own for each transaction.
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
        """Does the same for a batch that does not exist yet.

        Raises KafkaError for a fenced producer: its verification must not delay its successor.
        """
        producer = self.entries.get(producer_id)
        if producer is not None:
            if producer.has_open_transaction(epoch):
                return None
            if epoch < producer.epoch:
                raise self._fenced(producer, epoch)
        pending = self.pending_verifications
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
        """Raises KafkaError unless the transaction is open or `verification` allows to open it."""
        if self.has_open_transaction(producer_id, epoch):
            return
        if verification is None or verification is not self.pending_verifications.get(producer_id):
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self._name}: the transaction of producer {producer_id} that the batch "
                "belongs to is not open on this partition.",
            )

    def on_batch_appended(
        self, header: AppendedBatch, first_offset: int, last_offset: int, timestamp: int
    ) -> None:
        """Adds a batch that was appended."""
        producer_id = header.producer_id
        if self.pending_verifications:
            self.pending_verifications.pop(producer_id, None)
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = ProducerStateEntry(producer_id)
        if producer.epoch != header.producer_epoch:
            producer.update_epoch(header.producer_epoch)
        last_sequence = header.last_sequence
        # The constructor without its check of the number of fields, which costs as much again.
        producer.add_batch(
            tuple.__new__(
                BatchMetadata,
                (header.base_sequence, last_sequence, first_offset, last_offset, timestamp),
            )
        )
        producer.last_timestamp = timestamp
        if producer.transaction_first_offset < 0 and header.attributes & TRANSACTIONAL_BIT:
            producer.transaction_first_offset = first_offset
            self._open[producer_id] = first_offset

    def restore_earlier_batch(self, header: BatchHeader) -> None:
        """Adds a batch that is in the log before the last batch of its producer."""
        producer = self.entries.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch or not producer.batches:
            return
        batches = producer.batches
        if header.last_offset < batches[-1].first_offset:
            sequences = header.base_sequence, header.last_sequence
            offsets = header.base_offset, header.last_offset
            batches.insert(-1, BatchMetadata(*sequences, *offsets, header.max_timestamp))
            del batches[:-_BATCHES_PER_PRODUCER]

    def undo_from(self, offset: int, batches: Sequence[BatchHeader]) -> None:
        """Undoes the batches of a producer from `offset` on; `batches` are its last before that."""
        last = batches[-1]
        producer = self.entries[last.producer_id]
        # Batches in memory from before `offset` are kept, even if `batches` does not reach them.
        kept = [batch for batch in producer.batches if batch.last_offset < offset]
        if producer.epoch != last.producer_epoch:
            producer.update_epoch(last.producer_epoch)
            kept = []
        restored = [
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
        by_offset = {batch.last_offset: batch for batch in (*kept, *restored)}
        for end in sorted(by_offset):
            producer.add_batch(by_offset[end])
        producer.last_timestamp = last.max_timestamp
        if producer.transaction_first_offset >= offset:
            producer.transaction_first_offset = NO_TRANSACTION
            del self._open[producer.producer_id]
        self.pending_verifications.pop(producer.producer_id, None)

    def complete_transaction(
        self, header: AppendedBatch, marker: EndTransactionMarker, offset: int
    ) -> AbortedTransaction | None:
        """Ends a transaction by its marker at `offset`; returns it if it was aborted."""
        producer_id = header.producer_id
        self.pending_verifications.pop(producer_id, None)
        producer = self.entries.get(producer_id)
        if producer is None:
            producer = self.entries[producer_id] = ProducerStateEntry(producer_id)
        producer.update_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.last_timestamp = header.max_timestamp
        first_offset, producer.transaction_first_offset = (
            producer.transaction_first_offset,
            NO_TRANSACTION,
        )
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
        """The first offset of the oldest open transaction."""
        return next(iter(self._open.values()), None)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Returns the offset up to which every transaction has ended with a committed marker."""
        self.on_high_watermark_updated(high_watermark)
        stable = high_watermark
        if self._open:
            stable = min(stable, next(iter(self._open.values())))
        if self._completed:
            stable = min(stable, min(first_offset for first_offset, _ in self._completed))
        return stable

    def on_high_watermark_updated(self, high_watermark: int) -> None:
        """Forgets the completed transactions whose markers are committed."""
        completed = self._completed
        count = 0
        for _, last_offset in completed:
            if last_offset >= high_watermark:
                break
            count += 1
        del completed[:count]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> int:
        """Removes producers that were silent for too long and have no open transaction."""
        for producer_id, verification in tuple(self.pending_verifications.items()):
            if now_ms - verification.since_ms > expiration_ms:
                del self.pending_verifications[producer_id]
        silent = [
            producer_id
            for producer_id, producer in self.entries.items()
            if producer.transaction_first_offset < 0
            and now_ms - producer.last_timestamp > expiration_ms
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)

    def has_open_transaction(self, producer_id: int, epoch: int) -> bool:
        """Returns whether the producer's transaction of this epoch is open here."""
        producer = self.entries.get(producer_id)
        return producer is not None and producer.has_open_transaction(epoch)

    def _check_order(self, producer: ProducerStateEntry | None, header: AppendedBatch) -> None:
        """Raises KafkaError if the batch is out of sequence.

        An unknown producer may begin with any sequence, except after its own batches that wait for
        verification.
        """
        sequence = header.base_sequence
        verification = self.pending_verifications.get(header.producer_id)
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
    """Returns the marker in a control batch; None if it is another kind of control record."""
    records = read_records(batch)
    return read_marker(records[0]) if records else None
