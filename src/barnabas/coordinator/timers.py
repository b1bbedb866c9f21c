"""The timers of one shard, each under a key. Starting a timer again restarts it."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import partial
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

    __slots__ = ("_running", "_service", "_shard")

    def __init__(self, service: TimerService, shard: "CoordinatorShard[Any]") -> None:
        self._service = service
        self._shard = shard
        self._running: dict[Hashable, _RunningTimer] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._running

    def start(self, timer: StartTimer) -> None:
        running = self._running.get(timer.key)
        if running is not None and timer.only_if_absent:
            return
        if running is not None and running.timer is not None:
            running.timer = timer
            running.task = self._service.restart(running.task, timer.delay_ms)
            return
        self.cancel(timer.key)
        on_expired = partial(self._on_expired, timer.key)
        task = self._service.call_after(timer.delay_ms, on_expired)
        self._running[timer.key] = _RunningTimer(task, timer)

    def restart(self, key: Hashable, delay_ms: int) -> bool:
        """Restarts a running timer, so that it makes the same decision in `delay_ms`.

        Returns False, and does nothing, if there is none, or if it retries a write.
        """
        running = self._running.get(key)
        if running is None or running.timer is None:
            return False
        running.task = self._service.restart(running.task, delay_ms)
        return True

    def call_after(self, key: Hashable, delay_ms: int, callback: Callable[[], object]) -> None:
        """Calls `callback` in `delay_ms`, unless the key is cancelled or started again before."""
        self.cancel(key)

        def on_expired() -> None:
            del self._running[key]
            callback()

        self._running[key] = _RunningTimer(self._service.call_after(delay_ms, on_expired), None)

    def cancel(self, key: Hashable) -> None:
        running = self._running.pop(key, None)
        if running is not None:
            self._service.cancel(running.task)

    def cancel_all(self) -> None:
        for running in self._running.values():
            self._service.cancel(running.task)
        self._running.clear()

    def _on_expired(self, key: Hashable) -> None:
        timer = self._running.pop(key).timer
        assert timer is not None
        self._decide(timer)

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
            if timer.key in self._running or not shard.is_active:
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


class _RunningTimer:
    """A timer that has not expired. One that is started again makes the decision of the new one."""

    __slots__ = ("task", "timer")

    def __init__(self, task: Any, timer: StartTimer | None) -> None:
        self.task = task
        self.timer = timer
        """None if it calls back, instead of making a decision."""
