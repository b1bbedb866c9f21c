"""Snapshots of the committed image: when they are due, and how the loop goes on meanwhile."""

import asyncio
from typing import Final

from barnabas.metadata.frames import encode_record, record_version
from barnabas.metadata.image import Image
from barnabas.raft import Quorum

_RECORDS_A_TURN: Final = 200
"""What is encoded before others on the loop get their turn: well under a millisecond's work."""


class SnapshotSchedule:
    """`metadata.log.max.record.bytes.between.snapshots` and `...max.snapshot.interval.ms`."""

    __slots__ = ("_bytes_between", "_interval_ms", "_last_ms")

    def __init__(self, bytes_between: int, interval_ms: int) -> None:
        self._bytes_between = bytes_between
        self._interval_ms = interval_ms
        self._last_ms = 0

    def restart(self, now_ms: int) -> None:
        self._last_ms = now_ms

    def is_due(self, now_ms: int, bytes_since: int) -> bool:
        """Whether enough was written since the last, or anything and long enough ago."""
        waited = 0 < self._interval_ms <= now_ms - self._last_ms
        return bytes_since >= self._bytes_between or (bytes_since > 0 and waited)


async def write_snapshot(quorum: Quorum, image: Image, now_ms: int) -> None:
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
        await asyncio.get_running_loop().run_in_executor(None, writer.finish)
    except BaseException:
        writer.abandon()
        raise
    quorum.finish_snapshot(writer)
    quorum.clean(now_ms)
