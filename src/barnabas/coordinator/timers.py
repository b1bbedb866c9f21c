"""The timers of one shard, each under a key. Starting a timer again restarts it."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.decision import CoordinatorDecision, StartTimer
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import TimerService

if TYPE_CHECKING:
    from barnabas.coordinator.shard import CoordinatorShard

RETRY_MS = 500
"""How soon a timer's decision that could not be written is made again."""

log = logging.getLogger(__name__)


class ShardTimers:
    """Runs the decisions of timers, which are written as those of requests are."""

    __slots__ = ("_service", "_shard", "_tasks")

    def __init__(self, service: TimerService, shard: "CoordinatorShard[Any]") -> None:
        self._service = service
        self._shard = shard
        self._tasks: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._tasks

    def start(self, timer: StartTimer) -> None:
        if not (timer.only_if_absent and timer.key in self._tasks):
            self.call_after(timer.key, timer.delay_ms, lambda: self._decide(timer))

    def call_after(self, key: Hashable, delay_ms: int, callback: Callable[[], object]) -> None:
        """Calls `callback` in `delay_ms`, unless the key is cancelled or started again before."""
        self.cancel(key)

        def on_expired() -> None:
            del self._tasks[key]
            callback()

        self._tasks[key] = self._service.call_after(delay_ms, on_expired)

    def cancel(self, key: Hashable) -> None:
        task = self._tasks.pop(key, None)
        if task is not None:
            self._service.cancel(task)

    def cancel_all(self) -> None:
        for task in self._tasks.values():
            self._service.cancel(task)
        self._tasks.clear()

    def _decide(self, timer: StartTimer, *, is_retry: bool = False) -> None:
        shard = self._shard
        has_records = True

        def decide(state: Any) -> CoordinatorDecision[None]:
            nonlocal has_records
            decision = timer.decide(state, shard.context())
            has_records = bool(decision.records)
            return decision

        def on_done(response: PendingResponse[None]) -> None:
            if response.error is None or not has_records:
                return
            if timer.key in self._tasks or not shard.is_active:
                return
            if timer.retry is not None:
                self.start(timer.retry())
                return
            if not is_retry:  # a partition that commits nothing has many timers that retry
                name = " ".join(timer.key) if isinstance(timer.key, tuple) else timer.key
                log.warning("%s: timer %s retries its write: %s", shard, name, response.error)
            retry = replace(timer, delay_ms=RETRY_MS)
            self.call_after(timer.key, RETRY_MS, lambda: self._decide(retry, is_retry=True))

        shard.write(decide).when_done(on_done)
