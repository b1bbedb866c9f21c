"""Aborts transactions that are open for too long, and expires transactional ids that are not used.

Both are checked for periodically, at the intervals of the settings, and only among the ids whose
deadline may have passed.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import CoordinatorDecision, log_line, no_change
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import ResolvedSettings
from barnabas.coordinator.transactions.markers import prepare
from barnabas.coordinator.transactions.metadata import (
    TransactionContext,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.producer_ids import ProducerIdManager
from barnabas.coordinator.transactions.records import tombstone
from barnabas.wire.records.batch import NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.coordinator.shard import CoordinatorShard
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

ABORTED_AT_ONCE: Final = 100
EXPIRED_AT_ONCE: Final = 1_000
"""How many are handled before other work has its turn."""

ABORT_INTERVAL: Final = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
EXPIRY_INTERVAL: Final = "transaction.remove.expired.transaction.cleanup.interval.ms"

log = logging.getLogger(__name__)


class IdDeadlines:
    """The earliest deadline of each transactional id, so that a check looks at few ids.

    A deadline that is extended is not moved: the check finds it early and watches the id again.
    So an id costs a push on the heap once per deadline that passes, not once per transaction, and
    there is about one entry per id.
    """

    __slots__ = ("_earliest", "_heap")

    def __init__(self) -> None:
        self._heap: list[tuple[int, str]] = []
        self._earliest: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._earliest)

    def watch(self, transactional_id: str, deadline_ms: int) -> None:
        """Has `passed` return the id when `deadline_ms` has passed, or earlier."""
        earliest_ms = self._earliest.get(transactional_id)
        if earliest_ms is None or deadline_ms < earliest_ms:
            self._earliest[transactional_id] = deadline_ms
            heappush(self._heap, (deadline_ms, transactional_id))

    def passed(self, now_ms: int, limit: int) -> Iterator[str]:
        """Yields at most `limit` ids whose deadline has passed; they are no longer watched."""
        while limit and self._heap and self._heap[0][0] < now_ms:
            deadline_ms, transactional_id = heappop(self._heap)
            if self._earliest.get(transactional_id) == deadline_ms:
                del self._earliest[transactional_id]
                limit -= 1
                yield transactional_id


class TransactionTimeouts:
    """The two periodic checks of one shard."""

    def __init__(
        self,
        shard: "CoordinatorShard[TransactionCoordinatorState]",
        settings: ResolvedSettings,
        producer_ids: ProducerIdManager,
    ) -> None:
        self._shard = shard
        self._settings = settings
        self._producer_ids = producer_ids

    def start(self) -> None:
        self._schedule_abort(self._settings.broker(ABORT_INTERVAL))
        self._schedule_expiry(self._settings.broker(EXPIRY_INTERVAL))

    def _schedule_abort(self, delay_ms: int) -> None:
        self._shard.timers.call_after(("timed out",), delay_ms, self._abort_timed_out)

    def _schedule_expiry(self, delay_ms: int) -> None:
        self._shard.timers.call_after(("expired",), delay_ms, self._expire_unused)

    def _abort_timed_out(self) -> None:
        interval_ms: int = self._settings.broker(ABORT_INTERVAL)
        state, now_ms = self._shard.state, self._shard.context().now_ms
        passed = list(state.ongoing.passed(now_ms, ABORTED_AT_ONCE))
        for transactional_id in passed:
            if _is_timed_out(state.by_id.get(transactional_id), now_ms):
                self._abort(transactional_id)
            current = state.by_id.get(transactional_id)
            if current is not None and current.state is TransactionState.ONGOING:
                # A later transaction than the one that was watched, or the write failed.
                state.ongoing.watch(
                    transactional_id, max(current.deadline_ms, now_ms + interval_ms - 1)
                )
        has_more = len(passed) == ABORTED_AT_ONCE
        self._schedule_abort(0 if has_more else interval_ms)

    def _abort(self, transactional_id: str) -> None:
        shard = self._shard

        def write(new_id: PendingResponse[int]) -> None:
            if new_id.error is None:
                context = replace(shard.context(), new_producer_id=new_id.result())
                shard.write(lambda state: abort_timed_out(transactional_id, state, context))

        is_exhausted = shard.state.by_id[transactional_id].is_exhausted
        new_id = (
            self._producer_ids.generate()
            if is_exhausted
            else PendingResponse.completed(NO_PRODUCER_ID)
        )
        new_id.when_done(write)

    def _expire_unused(self) -> None:
        interval_ms: int = self._settings.broker(EXPIRY_INTERVAL)
        state, now_ms = self._shard.state, self._shard.context().now_ms
        passed = list(state.idle.passed(now_ms, EXPIRED_AT_ONCE))
        expired = [each for each in passed if _is_expired(each, state, now_ms)]
        if expired:
            tombstones = [tombstone(each) for each in expired]
            line = log_line(_log_expired, str(self._shard), len(expired))
            self._shard.write(
                lambda _: CoordinatorDecision(tombstones, None, [line], is_atomic=False)
            )
        for transactional_id in passed:
            current = state.by_id.get(transactional_id)
            if current is not None:  # used since, or the write failed
                state.idle.watch(
                    transactional_id,
                    max(current.updated_ms + state.expiration_ms, now_ms + interval_ms - 1),
                )
        has_more = len(passed) == EXPIRED_AT_ONCE
        self._schedule_expiry(0 if has_more else interval_ms)


def abort_timed_out(
    transactional_id: str, state: "TransactionCoordinatorState", context: TransactionContext
) -> CoordinatorDecision[None]:
    """Aborts a transaction for its producer, with an epoch that the producer does not have."""
    current = state.by_id.get(transactional_id)
    if current is None or not _is_timed_out(current, context.now_ms):
        return no_change()  # it ended while a producer id was allocated
    aborted = current.fenced(
        transaction_version=context.transaction_version,
        next_producer_id=context.new_producer_id,
        now_ms=context.now_ms,
    )
    return prepare(aborted, None, context, log_line(_log_timed_out, transactional_id))


def _log_timed_out(transactional_id: str) -> None:
    log.info("The transaction of %s has timed out: it is aborted", transactional_id)


def _log_expired(shard: str, count: int) -> None:
    log.info("%s: %d transactional ids have expired", shard, count)


def _is_timed_out(current: TransactionMetadata | None, now_ms: int) -> bool:
    return (
        current is not None
        and current.state is TransactionState.ONGOING
        and current.deadline_ms < now_ms
    )


def _is_expired(transactional_id: str, state: "TransactionCoordinatorState", now_ms: int) -> bool:
    current = state.by_id.get(transactional_id)
    return (
        current is not None
        and current.may_become(TransactionState.DEAD)
        and current.updated_ms + state.expiration_ms < now_ms
    )
