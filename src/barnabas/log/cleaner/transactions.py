"""The transactions that a cleaning meets: which batches were aborted, which markers are empty.

The data of an aborted transaction can be removed at once. A marker can be removed when its
transaction has no data left.
"""

from collections import deque
from collections.abc import Iterable

from barnabas.log.producers.producer_state import read_end_marker
from barnabas.log.segments.index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader, Readable


class CleanedTransactions:
    """Follows the transactions of a log from batch to batch, in the order of offsets."""

    __slots__ = ("_aborted", "_observed", "_ongoing_aborted", "_ongoing_committed")

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted = deque(sorted(aborted, key=lambda transaction: transaction.first_offset))
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}  # by producer id
        self._observed: set[int] = set()  # of these, the producers whose data was met
        self._ongoing_committed: set[int] = set()

    def on_data_batch(self, header: BatchHeader) -> bool:
        """Returns whether the batch belongs to an aborted transaction."""
        self._begin_until(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._observed.add(header.producer_id)
            return True
        self._ongoing_committed.add(header.producer_id)
        return False

    def on_control_batch(
        self, header: BatchHeader, batch: Readable
    ) -> tuple[bool, AbortedTransaction | None]:
        """Returns whether the batch marks the end of a transaction without data, and the entry
        that the transaction index of the new segment needs."""
        if header.record_count == 0:
            return True, None
        marker = read_end_marker(batch)
        if marker is None:
            return False, None
        self._begin_until(header.last_offset)
        producer_id = header.producer_id
        if marker.committed:
            is_empty = producer_id not in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return is_empty, None
        aborted = self._ongoing_aborted.pop(producer_id, None)
        is_empty = producer_id not in self._observed
        self._observed.discard(producer_id)
        return is_empty, None if is_empty else aborted

    def _begin_until(self, offset: int) -> None:
        while self._aborted and self._aborted[0].first_offset <= offset:
            aborted = self._aborted.popleft()
            self._ongoing_aborted.setdefault(aborted.producer_id, aborted)
