"""Brings the metadata log to disk off the loop, whatever was appended meanwhile in one go."""

import asyncio

from barnabas.log.background import BackgroundExecutor
from barnabas.log.flush import Flush
from barnabas.raft.driver import RaftDriver, as_disk_error


class MetadataLogFlusher:
    """At most one flush at a time; the next takes all that came while it ran.

    While the node starts, it flushes by `flush_now` alone; `begin` ends that.
    """

    __slots__ = ("_background", "_driver", "_ended", "_has_begun", "_is_running")

    def __init__(self, driver: RaftDriver, background: BackgroundExecutor) -> None:
        self._driver = driver
        self._background = background
        self._has_begun = False
        self._is_running = False
        self._ended: list[asyncio.Future[None]] = []

    @property
    def is_needed(self) -> bool:
        log = self._driver.log
        return log.durable_end_offset < log.end_offset

    def begin(self) -> None:
        self._has_begun = True

    def advance(self) -> None:
        if self._is_running or not self._has_begun or not self.is_needed:
            return
        flush = self._driver.log.begin_flush()
        self._is_running = True
        self._background.run(flush.sync, lambda error: self._synced(flush, error))

    def _synced(self, flush: Flush, error: BaseException | None) -> None:
        self._is_running = False
        driver = self._driver
        if isinstance(error, Exception):
            driver.fail(as_disk_error(error))
        elif error is None:
            self.finish(flush)
            driver.step()
        for ended in self._ended:
            if not ended.done():
                ended.set_result(None)
        self._ended.clear()

    def finish(self, flush: Flush) -> None:
        driver = self._driver
        driver.log.finish_flush(flush)
        driver.raft.on_flushed(driver.log.durable_end_offset, driver.now_ms)

    def flush_now(self) -> None:
        """Blocks until everything is on disk."""
        self._driver.log.flush()
        self._driver.raft.on_flushed(self._driver.log.durable_end_offset, self._driver.now_ms)

    async def idle(self) -> None:
        """Wait for the flush that is running, if any."""
        if self._is_running:
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._ended.append(ended)
            await ended
