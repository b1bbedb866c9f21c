"""The segments of a log in order, of which the last is active, and the result of a read."""

import os
import socket
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress

from barnabas.log.config import LogConfig
from barnabas.log.segments.log_files import DELETED, SEGMENT_SUFFIXES, SNAPSHOT
from barnabas.log.segments.open_files import OpenFile, OpenFiles
from barnabas.log.segments.segment import LogSegment


class LogSlice:
    """Whole batches: `size_bytes` of a segment from `position` on, sent without being copied.

    `first_offset` is the requested offset; the first batch may begin before it. `next_offset` is
    where the next read continues.
    """

    __slots__ = ("file", "first_offset", "next_offset", "position", "size_bytes")

    def __init__(
        self, file: OpenFile, position: int, size_bytes: int, first_offset: int, next_offset: int
    ) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.first_offset = first_offset
        self.next_offset = next_offset

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Reads the bytes, where they are few or sendfile cannot be used."""
        content = os.pread(self.file.fd, self.size_bytes, self.position)
        if len(content) != self.size_bytes:
            raise EOFError(f"only {len(content)} of {self.size_bytes} bytes of a segment exist")
        return content

    def send(self, to: socket.socket, sent: int, count: int) -> int:
        """Sends up to `count` bytes after the first `sent`; returns how many were sent."""
        return os.sendfile(to.fileno(), self.file.fd, self.position + sent, count)


class LogSegments:
    """At least one segment, by ascending base offset."""

    __slots__ = ("_bases", "_files", "_folder", "_ordered", "active")

    def __init__(self, folder: str, files: OpenFiles, ordered: list[LogSegment]) -> None:
        self._folder = folder
        self._files = files
        self._ordered = ordered
        self._bases = [segment.base_offset for segment in ordered]
        self.active = ordered[-1]

    def __len__(self) -> int:
        return len(self._ordered)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(self._ordered)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self._ordered)

    @property
    def base_offset(self) -> int:
        return self._bases[0]

    @property
    def ordered(self) -> Sequence[LogSegment]:
        return self._ordered

    def floor(self, offset: int) -> tuple[LogSegment, int]:
        """Returns the segment whose range has `offset`, and its number."""
        if offset >= self.active.base_offset:
            return self.active, len(self._ordered) - 1
        number = max(bisect_right(self._bases, offset) - 1, 0)
        return self._ordered[number], number

    def read(self, offset: int, max_bytes: int, upto: int, at_least_one: bool) -> LogSlice | None:
        """See `Log.read`."""
        segment, number = self.floor(offset)
        position = segment.position_of(offset)
        while position >= segment.size_bytes:  # compacted, or the end of the segment
            number += 1
            if number == len(self._ordered):
                return None
            segment, position = self._ordered[number], 0
        end, next_offset = segment.size_bytes, segment.next_offset
        if upto < next_offset:
            end, next_offset = segment.end_before(upto)
        if end - position > max_bytes:
            end, next_offset = segment.find_batch_end(position, position + max_bytes, end)
            if end == position and at_least_one:
                _, last_offset, size_bytes = segment.batch_extent(position)
                end, next_offset = position + size_bytes, last_offset + 1
        if end <= position:
            return None
        segment.cache_position(next_offset, end)
        return LogSlice(segment.file(), position, end - position, offset, next_offset)

    def since(self, number: int) -> list[LogSegment]:
        return self._ordered[number:]

    def add_active(self, base_offset: int, config: LogConfig) -> LogSegment:
        """Creates a new active segment."""
        segment = LogSegment.new(
            self._folder, base_offset, self._files, config.index_interval_bytes
        )
        segment.create_file(config.segment_bytes if config.preallocate else 0)
        self.active = segment
        self._ordered.append(self.active)
        self._bases.append(base_offset)
        return self.active

    def remove(self, removed: Sequence[LogSegment]) -> list[str]:
        """Removes segments and renames their files; returns the new paths.

        The caller adds a new segment if none is left.
        """
        renamed: list[str] = []
        for segment in removed:
            segment.close()
            for suffix in (*SEGMENT_SUFFIXES, SNAPSHOT):
                path = segment.path(suffix)
                with suppress(FileNotFoundError):
                    os.rename(path, path + DELETED)
                    renamed.append(path + DELETED)
        self._ordered = [segment for segment in self._ordered if segment not in removed]
        self._bases = [segment.base_offset for segment in self._ordered]
        if self._ordered:
            self.active = self._ordered[-1]
        return renamed

    def batch_boundary(self, offset: int) -> int:
        """Returns where the log ends without the batches that reach `offset`."""
        segment, _ = self.floor(offset)
        return segment.end_before(offset)[1]

    def truncate(self, offset: int) -> list[str]:
        """Drops the batches that reach `offset`; returns the new paths of whole segments."""
        renamed = self.remove([s for s in self._ordered[1:] if s.base_offset > offset])
        self.active.truncate(offset)
        return renamed

    def close(self) -> None:
        for segment in self._ordered:
            segment.close()
