"""Where requests wait for something to happen at a partition, or for their time to run out.

A parked request watches keys: partitions, or their logs. A change there pokes the key; each
request that watches it takes note in constant time, however many other partitions it watches,
and says whether it has seen enough. The future a handler awaits is the parked request itself:
True when it was satisfied, False when its time ran out. Either way the handler looks at the
partitions again and answers with what is there.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from typing import Protocol

from barnabas.replication import Partition
from barnabas.replication.partition import ALL_IN_SYNC
from barnabas.server.timer import Alarm, Timer
from barnabas.wire.errors import ErrorCode

TakeNote = Callable[[Hashable, int], bool]
"""Given the key poked and the bytes that became readable there: is it enough?"""


class Watcher(Protocol):
    """Who is told when a key is poked: a parked request, or who stays beyond one."""

    def take_note(self, key: Hashable, readable_bytes: int, /) -> bool: ...

    def finish(self, satisfied: bool) -> None: ...


class Purgatory:
    """All parked requests of a broker."""

    __slots__ = ("_timer", "_watching", "sizes")

    def __init__(self, timer: Timer) -> None:
        self._timer = timer
        self._watching: dict[Hashable, dict[Watcher, None]] = {}  # no value is empty
        self.sizes: dict[str, int] = {"Fetch": 0, "Produce": 0}
        """How many are parked, by operation."""

    def __len__(self) -> int:
        return sum(self.sizes.values())

    def park(
        self, keys: Iterable[Hashable], timeout_ms: int, take_note: TakeNote, operation: str
    ) -> "Parked":
        """Wait until `take_note` has heard enough of `keys`, or until `timeout_ms` have passed."""
        parked = Parked(self, list(keys), take_note, operation)
        for key in parked.keys:
            self.watch(key, parked)
        self.sizes[operation] = self.sizes.get(operation, 0) + 1
        parked.alarm = self._timer.after(timeout_ms, parked.expire)
        return parked

    def watch(self, key: Hashable, watcher: Watcher) -> None:
        """Tell `watcher` when the key is poked, until it is unwatched."""
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

    def poke(self, key: Hashable, readable_bytes: int = 0) -> None:
        """The key moved on: so many more bytes can be read, more is promised, or it is no longer
        what it was."""
        watchers = self._watching.get(key)
        if watchers is None:
            return
        for watcher in tuple(watchers):
            if watcher.take_note(key, readable_bytes):
                watcher.finish(True)

    def release_all(self) -> None:
        """The broker stops: nobody waits any longer."""
        for watcher in {watcher for watchers in self._watching.values() for watcher in watchers}:
            watcher.finish(False)

    def leave(self, parked: "Parked") -> None:
        """Forget a parked request, under every key it watches."""
        for key in parked.keys:
            self.unwatch(key, parked)
        self.sizes[parked.operation] -= 1
        if parked.alarm is not None:
            self._timer.cancel(parked.alarm)


class Parked(asyncio.Future[bool]):
    """A request that waits. Cancelling it (its client went away) takes it out of purgatory."""

    def __init__(
        self, purgatory: Purgatory, keys: list[Hashable], take_note: TakeNote, operation: str
    ) -> None:
        super().__init__()
        self.purgatory = purgatory
        self.keys = keys
        self.take_note = take_note
        self.operation = operation
        self.alarm: Alarm | None = None

    def finish(self, satisfied: bool) -> None:
        if not self.done():
            self.purgatory.leave(self)
            self.set_result(satisfied)

    def expire(self) -> None:
        self.finish(False)

    def cancel(self, msg: object = None) -> bool:
        if not self.done():
            self.purgatory.leave(self)
        return super().cancel(msg)


def when_promised(
    partition: Partition,
    next_offset: int,
    told: Callable[[ErrorCode], None],
    *,
    purgatory: Purgatory,
    timeout_ms: int,
    operation: str,
) -> None:
    """Tell NONE once all before `next_offset` is promised: at once, if it is. If that is not so in
    time, or the partition has another leader, tell that."""
    outcome = partition.outcome(next_offset, ALL_IN_SYNC)
    if outcome is not None:
        told(outcome)
        return

    def is_decided(_: Hashable, __: int) -> bool:
        return partition.outcome(next_offset, ALL_IN_SYNC) is not None

    def tell(_: "asyncio.Future[bool]") -> None:
        outcome = partition.outcome(next_offset, ALL_IN_SYNC)
        told(ErrorCode.REQUEST_TIMED_OUT if outcome is None else outcome)

    parked = purgatory.park([partition], timeout_ms, is_decided, operation)
    parked.add_done_callback(tell)
