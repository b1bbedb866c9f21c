"""Snapshots of the committed image: when they are due, and how the loop goes on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.config import BrokerSettings
from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import Image
from barnabas.node.background import Threads
from barnabas.raft import Quorum

_RECORDS_A_TURN: Final = 200
"""What is encoded before others on the loop get their turn: well under a millisecond's work."""


class MetadataSnapshots:
    """Every node writes its own, so that none needs the whole log at its next start."""

    def __init__(
        self,
        settings: BrokerSettings,
        quorum: Quorum,
        image: Callable[[], Image],
        *,
        threads: Threads,
        clock: Callable[[], int],
        failed: Callable[[OSError], None],
    ) -> None:
        self._bytes_between: int = settings["metadata.log.max.record.bytes.between.snapshots"]
        self._interval_ms: int = settings["metadata.log.max.snapshot.interval.ms"]
        self._quorum = quorum
        self._image = image
        self._failed = failed
        self._threads = threads
        self._last_ms = clock()
        self._writing: asyncio.Task[None] | None = None

    def maintain(self, now_ms: int) -> None:
        """Begin one if it is due."""
        is_writing = self._writing is not None and not self._writing.done()
        if not is_writing and self._is_due(now_ms):
            self._last_ms = now_ms
            self._writing = asyncio.create_task(self._write(now_ms))

    async def close(self) -> None:
        """Wait for the one that is under way."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _is_due(self, now_ms: int) -> bool:
        """Whether enough was written since the last, or anything and long enough ago."""
        bytes_since = self._quorum.bytes_since_snapshot
        waited = 0 < self._interval_ms <= now_ms - self._last_ms
        return bytes_since >= self._bytes_between or (bytes_since > 0 and waited)

    async def _write(self, now_ms: int) -> None:
        try:
            await write_snapshot(self._quorum, self._image().copy(), self._threads, now_ms)
        except OSError as error:
            self._failed(error)


async def write_snapshot(quorum: Quorum, image: Image, threads: Threads, now_ms: int) -> None:
    """Write `image`, which nobody else changes, and clean away what it makes superfluous."""
    end_offset, epoch = image.offset + 1, image.epoch
    newest = quorum.newest_snapshot
    if newest is not None and newest.end_offset >= end_offset:
        return
    writer = quorum.begin_snapshot(end_offset, epoch, now_ms)
    try:
        level = image.metadata_level
        frames = []
        for record in image.records():
            frames.append(encode_record(record, record_version(record, level)))
            if len(frames) == _RECORDS_A_TURN:
                writer.append(frames)
                frames = []
                await asyncio.sleep(0)
        writer.append(frames)
        await threads.call(writer.finish)
    except BaseException:
        writer.abandon()
        raise
    quorum.finish_snapshot(writer)
    quorum.clean(now_ms)
