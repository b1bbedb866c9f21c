"""Snapshots of the committed image: when one is due, and how it is written beside other work."""

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.config import BrokerSettings
from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import MetadataImage
from barnabas.node.environment import DiskThreads
from barnabas.raft import Quorum

_RECORDS_PER_SLICE: Final = 200
"""Records encoded before the loop runs other work: well under a millisecond."""


class MetadataSnapshots:
    """Every node writes its own snapshots, so that no start reads the whole metadata log."""

    def __init__(
        self,
        settings: BrokerSettings,
        quorum: Quorum,
        image: Callable[[], MetadataImage],
        *,
        threads: DiskThreads,
        clock: Callable[[], int],
        on_failed: Callable[[OSError], None],
    ) -> None:
        self._bytes_between: int = settings["metadata.log.max.record.bytes.between.snapshots"]
        self._interval_ms: int = settings["metadata.log.max.snapshot.interval.ms"]
        self._quorum = quorum
        self._image = image
        self._failed = on_failed
        self._threads = threads
        self._last_ms = clock()
        self._writing: asyncio.Task[None] | None = None

    def maintain(self, now_ms: int) -> None:
        """Starts a snapshot if one is due."""
        is_writing = self._writing is not None and not self._writing.done()
        if not is_writing and self._is_due(now_ms):
            self._last_ms = now_ms
            self._writing = asyncio.create_task(self._write(now_ms))

    async def close(self) -> None:
        """Waits for the snapshot that is being written, if any."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _is_due(self, now_ms: int) -> bool:
        """Whether the log has grown enough since the last snapshot, or at all and long ago."""
        bytes_since = self._quorum.bytes_since_snapshot
        waited = 0 < self._interval_ms <= now_ms - self._last_ms
        return bytes_since >= self._bytes_between or (bytes_since > 0 and waited)

    async def _write(self, now_ms: int) -> None:
        try:
            await write_snapshot(self._quorum, self._image().copy(), self._threads, now_ms)
        except OSError as error:
            self._failed(error)


async def write_snapshot(
    quorum: Quorum, image: MetadataImage, threads: DiskThreads, now_ms: int
) -> None:
    """Writes `image`, a private copy, and deletes the segments and snapshots it replaces."""

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
            if len(frames) == _RECORDS_PER_SLICE:
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
