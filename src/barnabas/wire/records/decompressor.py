"""Decompression into buffers that are used again.

A fresh buffer for every batch costs more than the decompression: the kernel clears each of its
pages when it is first written. Code that only reads the records, or copies what it needs of them,
decompresses into a buffer that is already there.

Each codec has a function that writes into a given buffer. It returns None if the result does not
fit, and also if the data is invalid: then `decompress` does the work again, in memory of its own,
and it decides on the bound and the error.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from typing import TypeAlias

from barnabas.wire.records import _lz4_frame
from barnabas.wire.records.compression import (
    GZIP_WINDOW_BITS,
    LZ4_MAGIC,
    XERIAL_MAGIC,
    Buffer,
    Codec,
    CompressionError,
    decompress,
    iterate_xerial_blocks,
    zstd_decompressor,
)

MAX_KEPT_BYTES = 4 << 20
"""The largest buffer that a thread keeps; the records of few requests need more."""

_FIRST_BYTES = 64 * 1024
_SMALL_GZIP_BYTES = 8 * 1024


class Decompressor:
    """Decompresses batches into one buffer, one after the other, until it is cleared.

    The results are views of the buffer: they are invalid after `clear`. Only one thread at a time
    may use it. What does not fit is returned in memory of its own, and the buffer is larger after
    the next `clear`, up to `max_kept_bytes`.
    """

    def __init__(self, max_kept_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_kept_bytes = max_kept_bytes
        self._buffer = memoryview(bytearray(min(_FIRST_BYTES, max_kept_bytes)))
        self._used_bytes = 0
        self._excess_bytes = 0  # of the results that did not fit

    @property
    def kept_bytes(self) -> int:
        """The size of the buffer."""
        return len(self._buffer)

    def decompress(self, codec: Codec, compressed: Buffer, max_bytes: int) -> Buffer:
        """Returns the decompressed bytes; raises CompressionError if they exceed `max_bytes`."""
        start = self._used_bytes
        if not self._excess_bytes:
            room = self._buffer[start : start + max(max_bytes, 0)]
            size = _DECOMPRESS_INTO[codec](compressed, room)
            if size is not None:
                self._used_bytes = start + size
                return room[:size]
        expanded = decompress(codec, compressed, max_bytes)
        self._excess_bytes += len(expanded)
        return expanded

    def clear(self) -> None:
        """Invalidates the results, so that their memory is used again."""
        if self._excess_bytes:
            self._grow(self._used_bytes + self._excess_bytes)
            self._excess_bytes = 0
        self._used_bytes = 0

    def _grow(self, needed_bytes: int) -> None:
        size = len(self._buffer)
        while size <= needed_bytes and size < self._max_kept_bytes:
            size *= 2
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(min(size, self._max_kept_bytes)))


class _ThreadDecompressor(threading.local):
    """The decompressor of a thread, unless it is borrowed."""

    def __init__(self) -> None:
        self.spare: Decompressor | None = None


_thread = _ThreadDecompressor()


def decompress_temporarily(codec: Codec, compressed: Buffer, max_bytes: int) -> memoryview:
    """Returns the decompressed bytes, which are valid until this thread decompresses again.

    Raises CompressionError if the data is invalid, or exceeds `max_bytes` when decompressed.
    """
    decompressor = _thread.spare
    if decompressor is None:
        decompressor = _thread.spare = Decompressor()
    decompressor.clear()
    expanded = decompressor.decompress(codec, compressed, max_bytes)
    return expanded if isinstance(expanded, memoryview) else memoryview(expanded)


def decompress_for_validation(codec: Codec, compressed: Buffer, max_bytes: int) -> memoryview:
    """Returns the bytes of a producer's records, as Kafka's clients in Java read them.

    It is valid as long as that of `decompress_temporarily`, and raises CompressionError also for
    an LZ4 frame that Java cannot read.
    """
    if codec == Codec.LZ4 and compressed[: len(LZ4_MAGIC)] == LZ4_MAGIC:
        if _lz4_frame.has_linked_blocks(compressed):
            raise CompressionError("The LZ4 frame has linked blocks, which Java cannot read.")
        size_bytes = _lz4_frame.first_frame_bytes(compressed)
        if size_bytes < len(compressed):
            compressed = compressed[:size_bytes]  # Java ignores what follows it
    return decompress_temporarily(codec, compressed, max_bytes)


def borrow_decompressor() -> Decompressor:
    """Returns a decompressor whose results stay valid until it is given back."""
    decompressor = _thread.spare
    if decompressor is None:
        return Decompressor()
    _thread.spare = None
    decompressor.clear()
    return decompressor


def give_back_decompressor(decompressor: Decompressor) -> None:
    """Keeps a borrowed decompressor for the thread's next batch, if it has none."""
    if _thread.spare is None:
        _thread.spare = decompressor


_Size: TypeAlias = int | None


def _unlz4_into(compressed: Buffer, room: memoryview) -> _Size:
    size = _lz4_frame.decompress_plain_into(compressed, room)
    if size is not None:
        return size
    import cramjam

    try:
        return cramjam.lz4.decompress_into(compressed, room)
    except cramjam.DecompressionError:
        return None


def _gunzip_into(compressed: Buffer, room: memoryview) -> _Size:
    if len(compressed) < _SMALL_GZIP_BYTES:
        return _gunzip_small_into(compressed, room)
    import cramjam

    try:
        return cramjam.gzip.decompress_into(compressed, room)
    except cramjam.DecompressionError:
        return None


def _gunzip_small_into(compressed: Buffer, room: memoryview) -> _Size:
    """Of small data, the other library takes less time although it allocates the result."""
    stream = zlib.decompressobj(GZIP_WINDOW_BITS)
    try:
        expanded = stream.decompress(compressed, len(room)) if len(room) else b""
    except zlib.error:
        return None
    if not stream.eof or stream.unused_data:
        return None
    size = len(expanded)
    room[:size] = expanded
    return size


def _unsnappy_into(compressed: Buffer, room: memoryview) -> _Size:
    import cramjam

    decompress_block = cramjam.snappy.decompress_raw_into
    try:
        if compressed[: len(XERIAL_MAGIC)] != XERIAL_MAGIC:
            return decompress_block(compressed, room)
        size = 0
        for block in iterate_xerial_blocks(memoryview(compressed)):
            size += decompress_block(block, room[size:])
        return size
    except (cramjam.DecompressionError, CompressionError):
        return None


def _unzstd_into(compressed: Buffer, room: memoryview) -> _Size:
    import zstandard

    try:
        reader = zstd_decompressor().stream_reader(compressed, read_across_frames=True)
        size = reader.readinto(room)
    except zstandard.ZstdError:
        return None
    return size if size < len(room) else None  # the reader does not say if there is more


_DECOMPRESS_INTO: dict[int, Callable[[Buffer, memoryview], _Size]] = {
    Codec.GZIP: _gunzip_into,
    Codec.SNAPPY: _unsnappy_into,
    Codec.LZ4: _unlz4_into,
    Codec.ZSTD: _unzstd_into,
}
"""Of each codec, what returns the size of the result, or None if it does not fit or is invalid."""
