"""Reads that wait for the disk: in threads, so that the event loop does not wait with them."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from barnabas.log import ColdRead
from barnabas.log.flush import BackgroundExecutor

MAX_CONCURRENT_READS = 2
"""Fewer than there are threads, so that a flush never waits for a reader."""

T = TypeVar("T")


class DiskReads:
    """Runs a few reads at a time, in the order in which they were requested.

    A request or a connection has one read at a time. So readers of old records take turns, and no
    more reads wait than there are clients.
    """

    __slots__ = ("_background", "_running", "_waiting")

    def __init__(self, background: BackgroundExecutor) -> None:
        self._background = background
        self._running = 0
        self._waiting: deque[PendingRead[Any]] = deque()

    def __len__(self) -> int:
        """Returns the number of reads that run or wait."""
        return self._running + len(self._waiting)

    def run(self, read: Callable[[], T]) -> "PendingRead[T]":
        """Runs `read` in a thread; await its result. A cancelled read that waits never runs."""
        pending = PendingRead(read)
        self._waiting.append(pending)
        self._start_waiting()
        return pending

    def start_load(self, cold: ColdRead) -> None:
        """Loads what will be read soon. If that fails, so will the read, which reports it."""
        self.run(cold.load).add_done_callback(lambda done: done.cancelled() or done.exception())

    def _start_waiting(self) -> None:
        while self._waiting and self._running < MAX_CONCURRENT_READS:
            pending = self._waiting.popleft()
            if not pending.done():
                self._running += 1
                self._background.run(pending.work, partial(self._on_done, pending))

    def _on_done(self, pending: "PendingRead[Any]", failure: BaseException | None) -> None:
        self._running -= 1
        pending.complete(failure)
        self._start_waiting()


class PendingRead(asyncio.Future[T], Generic[T]):
    """A read that waits or runs. It is cancelled when its client disconnects."""

    def __init__(self, read: Callable[[], T]) -> None:
        super().__init__()
        self._read = read
        self._content: T | None = None

    def work(self) -> None:
        """Reads; called in a thread."""
        self._content = self._read()

    def complete(self, failure: BaseException | None) -> None:
        if self.done():
            return
        if failure is not None:
            self.set_exception(failure)
        else:
            self.set_result(self._content)  # type: ignore[arg-type] # what `work` has read
