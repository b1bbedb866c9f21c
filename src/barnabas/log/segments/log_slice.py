"""The result of a read: a part of a segment file, for sending."""

import os
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from barnabas.log.segments.open_files import OpenFile
from barnabas.log.segments.page_cache import (
    LOAD_BYTES,
    ColdRead,
    NotCached,
    count_cached,
    load,
    pread_cached,
)

SendFile: TypeAlias = Callable[[int, int, int], int]
"""Sends bytes of a file: descriptor, position, count. Returns how many were sent."""


class LogSlice:
    """Whole batches: `size_bytes` of a segment from `position` on, sent without being copied.

    `first_offset` is the requested offset; the first batch may begin before it. `next_offset` is
    where the next read continues. The event loop uses `read_cached` and `send`, which raise
    ColdRead instead of waiting for the disk.
    """

    __slots__ = ("_cached_bytes", "file", "first_offset", "next_offset", "position", "size_bytes")

    def __init__(
        self, file: OpenFile, position: int, size_bytes: int, first_offset: int, next_offset: int
    ) -> None:
        self.file = file
        self.position = position
        self.size_bytes = size_bytes
        self.first_offset = first_offset
        self.next_offset = next_offset
        self._cached_bytes = 0  # from the start on, known to be in the page cache

    def __len__(self) -> int:
        return self.size_bytes

    def read(self) -> bytes:
        """Reads the bytes, and waits for the disk if it must."""
        content = os.pread(self.file.fd, self.size_bytes, self.position)
        if len(content) != self.size_bytes:
            raise EOFError(f"only {len(content)} of {self.size_bytes} bytes of a segment exist")
        return content

    def read_cached(self) -> bytes | bytearray:
        """Reads the bytes, where they are few."""
        size_bytes = self.size_bytes
        if self._cached_bytes < size_bytes:
            try:
                content = pread_cached(self.file.fd, size_bytes, self.position)
            except NotCached:
                raise ColdRead(partial(self._load, 0)) from None
            if len(content) == size_bytes:
                return content
        return self.read()

    def send(self, send_file: SendFile, sent: int, count: int) -> int:
        """Sends up to `count` bytes after the first `sent`; returns how many were sent."""
        fd, position = self.file.fd, self.position + sent
        cached = self._cached_bytes - sent
        if cached <= 0:
            cached = count_cached(fd, position, min(count, LOAD_BYTES))
            if not cached:
                raise ColdRead(partial(self._load, sent))
            self._cached_bytes = sent + cached
        return send_file(fd, position, min(count, cached))

    def next_cold_read(self) -> ColdRead | None:
        """Returns what to load for the reader that continues after this slice, if anything."""
        end = self.position + self.size_bytes
        if count_cached(self.file.fd, end, 1):
            return None
        return ColdRead(partial(self._load, self.size_bytes))

    def _load(self, start: int) -> None:
        """Loads the bytes after the first `start`, and the batches behind them."""
        load(self.file.fd, self.position + start)
        self._cached_bytes = start + LOAD_BYTES
