"""What time does to transactions: those open for too long are aborted, unused ids forgotten.

Both are looked for every so often, as the settings say, and only among the ids whose time may
have come.
"""

import logging
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import TransactionState
from barnabas.coordinator.transactions.records import tombstone
from barnabas.wire.records.batch import NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

ABORTED_AT_ONCE: Final = 100
EXPIRED_AT_ONCE: Final = 1_000
"""How many are dealt with before others have their turn."""

ABORT_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
EXPIRY_INTERVAL: Final = "transaction.remove.expired.transaction.cleanup.interval.ms"

log = logging.getLogger(__name__)


def start(transactions: "TransactionCoordinatorState") -> None:
    """Look for both from now on."""
    _look_for_timed_out(transactions, transactions.settings.broker(ABORT_INTERVAL))
    _look_for_expired(transactions, transactions.settings.broker(EXPIRY_INTERVAL))


def _look_for_timed_out(transactions: "TransactionCoordinatorState", delay_ms: int) -> None:
    transactions.timers.set(
        ("timed out",),
        delay_ms,
        lambda: Decision(None, committed=lambda: _abort_timed_out(transactions)),
    )


def _abort_timed_out(transactions: "TransactionCoordinatorState") -> None:
    interval_ms: int = transactions.settings.broker(ABORT_INTERVAL)
    now_ms = transactions.now_ms()
    passed = list(transactions.ongoing.passed(now_ms, ABORTED_AT_ONCE))
    for transactional_id in passed:
        if _is_timed_out(transactions, transactional_id):
            _abort(transactions, transactional_id)
        current = transactions.by_id.get(transactional_id)
        if current is not None and current.state is TransactionState.ONGOING:
            # Another transaction than the one that was watched, or one that cannot be ended now.
            transactions.ongoing.watch(
                transactional_id, max(current.deadline_ms, now_ms + interval_ms - 1)
            )
    are_more = len(passed) == ABORTED_AT_ONCE
    _look_for_timed_out(transactions, 0 if are_more else interval_ms)


def _abort(transactions: "TransactionCoordinatorState", transactional_id: str) -> None:
    """End it in the producer's place, with an epoch that the producer does not have."""

    def decide(state: "TransactionCoordinatorState", new_id: int) -> Decision[None]:
        if not _is_timed_out(state, transactional_id):
            return Decision(None)  # while an id was waited for
        log.info("%s: the transaction of %s has timed out", state.shard, transactional_id)
        aborted = state.by_id[transactional_id].fenced(
            transaction_version=state.transaction_version,
            next_producer_id=new_id,
            now_ms=state.now_ms(),
        )
        return prepare(state, aborted, None)

    def with_id(taken: PendingResponse[int]) -> None:
        if taken.error is None:
            transactions.shard.write(lambda state: decide(state, taken.result()))

    is_exhausted = transactions.by_id[transactional_id].is_exhausted
    new_id = (
        transactions.producer_ids.generate()
        if is_exhausted
        else PendingResponse.completed(NO_PRODUCER_ID)
    )
    new_id.when_done(with_id)


def _is_timed_out(transactions: "TransactionCoordinatorState", transactional_id: str) -> bool:
    current = transactions.by_id.get(transactional_id)
    return (
        current is not None
        and current.state is TransactionState.ONGOING
        and current.deadline_ms < transactions.now_ms()
    )


def _look_for_expired(transactions: "TransactionCoordinatorState", delay_ms: int) -> None:
    transactions.timers.set(
        ("expired",),
        delay_ms,
        lambda: Decision(None, committed=lambda: _forget_expired(transactions)),
    )


def _forget_expired(transactions: "TransactionCoordinatorState") -> None:
    interval_ms: int = transactions.settings.broker(EXPIRY_INTERVAL)
    now_ms = transactions.now_ms()
    passed = list(transactions.idle.passed(now_ms, EXPIRED_AT_ONCE))
    expired = [each for each in passed if _is_expired(transactions, each, now_ms)]
    if expired:
        log.info("%s: %d transactional ids have expired", transactions.shard, len(expired))
        forgotten = [tombstone(each) for each in expired]
        transactions.shard.write(lambda _: Decision(None, forgotten, is_atomic=False))
    for transactional_id in passed:
        current = transactions.by_id.get(transactional_id)
        if current is not None:  # used since, or not to be written off now
            transactions.idle.watch(
                transactional_id,
                max(current.updated_ms + transactions.expiration_ms, now_ms + interval_ms - 1),
            )
    are_more = len(passed) == EXPIRED_AT_ONCE
    _look_for_expired(transactions, 0 if are_more else interval_ms)


def _is_expired(
    transactions: "TransactionCoordinatorState", transactional_id: str, now_ms: int
) -> bool:
    current = transactions.by_id.get(transactional_id)
    return (
        current is not None
        and current.may_become(TransactionState.DEAD)
        and current.updated_ms + transactions.expiration_ms < now_ms
    )


class IdDeadlines:
    """By id the earliest time to look at it.

    A deadline that has been put off is not moved: whoever looks finds it early and watches the id
    anew. So an id costs a push on the heap once per deadline that passes, not once per
    transaction, and there is about one entry for each id.
    """

    __slots__ = ("_earliest", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._earliest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._earliest)

    def watch(self, transactional_id: str, due_ms: int) -> None:
        """Look at the id when `due_ms` has passed, or before."""
        known_ms = self._earliest.get(transactional_id)
        if known_ms is None or due_ms < known_ms:
            self._earliest[transactional_id] = due_ms
            heappush(self._heap, (due_ms, transactional_id))

    def passed(self, now_ms: int, limit: int) -> Iterator[str]:
        """At most `limit` ids whose time has passed; they are no longer watched."""
        while limit and self._heap and self._heap[0][0] < now_ms:
            due_ms, transactional_id = heappop(self._heap)
            if self._earliest.get(transactional_id) == due_ms:
                del self._earliest[transactional_id]
                limit -= 1
                yield transactional_id
