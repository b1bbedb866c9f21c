"""The segments of a log in order, of which the last is active."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from operator import is_

from barnabas.log.config import LogConfig
from barnabas.log.segments.log_files import DELETED, SEGMENT_SUFFIXES, SNAPSHOT
from barnabas.log.segments.log_slice import LogSlice
from barnabas.log.segments.open_files import OpenFile, OpenFiles
from barnabas.log.segments.page_cache import ColdRead, NotCached, PositionalRead, load
from barnabas.log.segments.segment import LogSegment


class LogSegments:
    """At least one segment, by ascending base offset."""

    __slots__ = ("_bases", "_files", "_folder", "_ordered", "active")

    def __init__(self, folder: str, files: OpenFiles, ordered: list[LogSegment]) -> None:
        self._folder = folder
        self._files = files
        self._ordered = ordered
        self._bases = [segment.base_offset for segment in ordered]
        self.active = ordered[-1]
        if self.active.size_bytes:
            # After a restart, most readers continue at the end of the log: they need no index.
            self.active.cache_position(self.active.next_offset, self.active.size_bytes)

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

    def read(
        self,
        offset: int,
        max_bytes: int,
        upto: int,
        at_least_one: bool,
        pread: PositionalRead = os.pread,
    ) -> LogSlice | None:
        """See `Log.read`."""
        segment, number = self.floor(offset)
        try:
            position = segment.position_of(offset, pread)
            while position >= segment.size_bytes:  # compacted, or the end of the segment
                number += 1
                if number == len(self._ordered):
                    return None
                segment, position = self._ordered[number], 0
            end, next_offset = segment.size_bytes, segment.next_offset
            if upto < next_offset:
                end, next_offset = segment.end_before(upto, pread)
            if end - position > max_bytes:
                limit = position + max_bytes
                end, next_offset = segment.find_batch_end(position, limit, end, pread)
                if end == position and at_least_one:
                    _, last_offset, size_bytes = segment.batch_extent(position, pread)
                    end, next_offset = position + size_bytes, last_offset + 1
        except NotCached as missing:
            raise ColdRead(partial(_load, segment.file(), missing.position)) from None
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
        renamed = [
            path
            for segment in removed
            for path in mark_deleted(segment, (*SEGMENT_SUFFIXES, SNAPSHOT))
        ]
        self._ordered = [segment for segment in self._ordered if segment not in removed]
        self._bases = [segment.base_offset for segment in self._ordered]
        if self._ordered:
            self.active = self._ordered[-1]
        return renamed

    def has_consecutive(self, segments: Sequence[LogSegment]) -> bool:
        """Returns whether these segments are still there, one after the other."""
        if not segments:
            return True
        number = bisect_left(self._bases, segments[0].base_offset)
        existing = self._ordered[number : number + len(segments)]
        return len(existing) == len(segments) and all(map(is_, existing, segments))

    def replace(self, replaced: Sequence[LogSegment], replacements: Sequence[LogSegment]) -> None:
        """Has new segments in place of consecutive ones, none of which is the active one."""
        number = self._ordered.index(replaced[0])
        ordered = list(self._ordered)
        ordered[number : number + len(replaced)] = replacements
        for segment, successor in pairwise(ordered[number : number + len(replacements) + 1]):
            segment.next_offset = successor.base_offset
        self._ordered = ordered
        self._bases = [segment.base_offset for segment in ordered]

    def batch_boundary(self, offset: int) -> int:
        """Returns where the log ends without the batches that reach `offset`.

        It is the end of a batch or the base offset of a segment, also where compaction has left a
        hole: the next start finds the same end.
        """
        segment, _ = self.floor(offset)
        position = segment.position_of(offset)
        if position == 0:
            return segment.base_offset
        return segment.find_batch_end(0, position, position)[1]

    def truncate(self, offset: int) -> list[str]:
        """Drops the batches that reach `offset`; returns the new paths of whole segments."""
        renamed = self.remove([s for s in self._ordered[1:] if s.base_offset > offset])
        self.active.truncate(offset)
        return renamed

    def close(self) -> None:
        for segment in self._ordered:
            segment.close()


def mark_deleted(segment: LogSegment, suffixes: Iterable[str]) -> list[str]:
    """Closes a segment and renames its files; returns the new paths."""
    segment.close()
    renamed: list[str] = []
    for suffix in suffixes:
        path = segment.path(suffix)
        with suppress(FileNotFoundError):
            os.rename(path, path + DELETED)
            renamed.append(path + DELETED)
    return renamed


def _load(file: OpenFile, position: int) -> None:
    """Loads a part of a file, which the reference keeps open."""
    load(file.fd, position)
