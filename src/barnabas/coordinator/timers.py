"""The alarms of one shard, each under a key: setting one again puts it off."""

import logging
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.ports import TimerService

if TYPE_CHECKING:
    from barnabas.coordinator.shard import CoordinatorShard

RETRY_MS = 500
"""How soon a decision that could not be written is tried again."""

log = logging.getLogger(__name__)


class ShardTimers:
    """Decisions that time makes. They are written as those that requests make."""

    __slots__ = ("_alarms", "_clockwork", "_shard")

    def __init__(self, clockwork: TimerService, shard: "CoordinatorShard[Any]") -> None:
        self._clockwork = clockwork
        self._shard = shard
        self._alarms: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self._alarms)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._alarms

    def set(self, key: Hashable, delay_ms: int, decide: Callable[[], Decision[None]]) -> None:
        """Decide in `delay_ms`, unless cancelled or set again before."""
        alarm = self._alarms.get(key)
        if alarm is not None:
            self._clockwork.cancel(alarm)
        self._set(key, delay_ms, decide, is_first=True)

    def cancel(self, key: Hashable) -> None:
        alarm = self._alarms.pop(key, None)
        if alarm is not None:
            self._clockwork.cancel(alarm)

    def cancel_all(self) -> None:
        for alarm in self._alarms.values():
            self._clockwork.cancel(alarm)
        self._alarms.clear()

    def _set(
        self, key: Hashable, delay_ms: int, decide: Callable[[], Decision[None]], *, is_first: bool
    ) -> None:
        self._alarms[key] = self._clockwork.call_after(
            delay_ms, lambda: self._ring(key, decide, is_first)
        )

    def _ring(self, key: Hashable, decide: Callable[[], Decision[None]], is_first: bool) -> None:
        del self._alarms[key]

        def retry(answer: PendingResponse[None]) -> None:
            if answer.error is None or key in self._alarms or not self._shard.is_active:
                return
            if is_first:  # a partition that commits nothing has many that try
                log.warning("%s: %s is tried again: %s", self._shard, key, answer.error)
            self._set(key, RETRY_MS, decide, is_first=False)

        self._shard.write(lambda _: decide()).when_done(retry)
