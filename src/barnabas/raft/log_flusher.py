"""Flushes the metadata log in a background thread, with group commit."""

import asyncio

from barnabas.log.flush import BackgroundExecutor, Flush
from barnabas.raft.driver import RaftDriver, as_disk_error


class MetadataLogFlusher:
    """Runs at most one flush at a time; the next covers all that was appended meanwhile.

    While the node starts, only `flush_now` flushes; `start` begins background flushes.
    """

    __slots__ = ("_background", "_driver", "_is_running", "_is_started", "_waiters")

    def __init__(self, driver: RaftDriver, background: BackgroundExecutor) -> None:
        self._driver = driver
        self._background = background
        self._is_started = False
        self._is_running = False
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def is_needed(self) -> bool:
        log = self._driver.log
        return log.durable_end_offset < log.end_offset

    def start(self) -> None:
        self._is_started = True

    def advance(self) -> None:
        if self._is_running or not self._is_started or not self.is_needed:
            return
        flush = self._driver.log.begin_flush()
        self._is_running = True
        self._background.run(flush.sync, lambda error: self._on_synced(flush, error))

    def _on_synced(self, flush: Flush, error: BaseException | None) -> None:
        self._is_running = False
        driver = self._driver
        if isinstance(error, Exception):
            driver.fail(as_disk_error(error))
        elif error is None:
            self._finish(flush)
            driver.step()
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def _finish(self, flush: Flush) -> None:
        driver = self._driver
        driver.log.finish_flush(flush)
        driver.raft.on_flushed(driver.log.durable_end_offset, driver.now_ms)

    def flush_now(self) -> None:
        """Blocks until the whole log is on disk."""
        self._driver.log.flush()
        self._driver.raft.on_flushed(self._driver.log.durable_end_offset, self._driver.now_ms)

    async def wait_idle(self) -> None:
        """Waits for the flush that is running, if any."""
        if self._is_running:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            await waiter
