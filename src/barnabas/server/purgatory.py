"""The purgatory: requests that wait for a change of a partition, or for their timeout.

A delayed operation watches keys: partitions, or their logs. A change notifies the key, and every
operation that watches it decides in constant time whether it is complete, however many other
partitions it watches. The operation itself is the future that the handler awaits: True if it
completed, False if it timed out. Either way the handler reads the partitions again and responds
with their present state.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

from barnabas.replication import Partition
from barnabas.replication.partition import ACKS_ALL
from barnabas.server.timer import Timer, TimerTask
from barnabas.wire.errors import ErrorCode

OnChange = Callable[[Hashable, int], bool]
"""Called with the key and the bytes that became readable; returns whether that is enough."""


class Watcher(Protocol):
    """An object that is notified about a key: a delayed operation, or a fetch session."""

    def on_change(self, key: Hashable, readable_bytes: int, /) -> bool: ...

    def complete(self, satisfied: bool) -> None: ...


class Purgatory:
    """All delayed operations of a broker."""

    __slots__ = ("_timer", "_watching", "sizes")

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watching: dict[Hashable, dict[Watcher, None]] = {}  # no value is empty
        self.sizes: dict[str, int] = {"Fetch": 0, "Produce": 0}
        """The number of delayed operations, by the name of the operation."""

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def delay(
        self, keys: Iterable[Hashable], timeout_ms: int, on_change: OnChange, operation: str
    ) -> "DelayedOperation":
        """Returns an operation that completes when `on_change` returns True for one of `keys`, or
        after `timeout_ms`."""
        delayed = DelayedOperation(self, list(keys), on_change, operation)
        for key in delayed.keys:
            self.watch(key, delayed)
        self.sizes[operation] = self.sizes.get(operation, 0) + 1
        delayed.timer_task = self._timer.call_after(timeout_ms, delayed.expire)
        return delayed

    def watch(self, key: Hashable, watcher: Watcher) -> None:
        """Notifies `watcher` about changes of the key, until it is unwatched."""
        watchers = self._watching.get(key)
        if watchers is None:
            self._watching[key] = {watcher: None}
        else:
            watchers[watcher] = None

    def unwatch(self, key: Hashable, watcher: Watcher) -> None:
        watchers = self._watching.get(key)
        if watchers is not None:
            watchers.pop(watcher, None)
            if not watchers:
                del self._watching[key]

    def notify(self, key: Hashable, readable_bytes: int = 0) -> None:
        """Notifies the watchers of a key: more bytes are readable, more records are committed, or
        the partition's leadership changed."""
        watchers = self._watching.get(key)
        if watchers is None:
            return
        for watcher in tuple(watchers):
            if watcher.on_change(key, readable_bytes):
                watcher.complete(True)

    def release_all(self) -> None:
        """Completes every operation, because the broker stops."""
        for watcher in {watcher for watchers in self._watching.values() for watcher in watchers}:
            watcher.complete(False)

    def remove(self, delayed: "DelayedOperation") -> None:
        """Removes an operation from all keys that it watches, and cancels its timeout."""
        for key in delayed.keys:
            self.unwatch(key, delayed)
        self.sizes[delayed.operation] -= 1
        if delayed.timer_task is not None:
            self._timer.cancel(delayed.timer_task)


class DelayedOperation(asyncio.Future[bool]):
    """A request that waits. Cancelling it, when its client disconnects, removes it."""

    def __init__(
        self, purgatory: Purgatory, keys: list[Hashable], on_change: OnChange, operation: str
    ) -> None:
        super().__init__()
        self.purgatory = purgatory
        self.keys = keys
        self.on_change = on_change
        self.operation = operation
        self.timer_task: TimerTask | None = None

    def complete(self, satisfied: bool) -> None:
        if not self.done():
            self.purgatory.remove(self)
            self.set_result(satisfied)

    def expire(self) -> None:
        self.complete(False)

    def cancel(self, msg: object = None) -> bool:
        if not self.done():
            self.purgatory.remove(self)
        return super().cancel(msg)


def when_committed(
    partition: Partition,
    next_offset: int,
    on_outcome: Callable[[ErrorCode], None],
    *,
    purgatory: Purgatory,
    timeout_ms: int,
    operation: str,
) -> None:
    """Calls `on_outcome` with NONE when all records before `next_offset` are committed, or else
    with the error: REQUEST_TIMED_OUT, or that the partition has another leader.

    It is called before this function returns if the outcome is known.
    """
    outcome = partition.commit_result(next_offset, ACKS_ALL)
    if outcome is not None:
        on_outcome(outcome)
        return

    def is_decided(_: Hashable, __: int) -> bool:
        return partition.commit_result(next_offset, ACKS_ALL) is not None

    def on_done(_: "asyncio.Future[bool]") -> None:
        outcome = partition.commit_result(next_offset, ACKS_ALL)
        on_outcome(ErrorCode.REQUEST_TIMED_OUT if outcome is None else outcome)

    delayed = purgatory.delay([partition], timeout_ms, is_decided, operation)
    delayed.add_done_callback(on_done)
