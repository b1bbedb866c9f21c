"""The compression codecs of batches, each with a bound on the decompressed size.

A codec's library is imported when the first batch needs it: most brokers never decompress a
record, because batches are stored as they were sent.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from zstandard import ZstdCompressor, ZstdDecompressor

Buffer: TypeAlias = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression type in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(KafkaError):
    """The bytes are not valid for the codec, or exceed the bound when decompressed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


def compress(codec: Codec, buffer: Buffer, level: int | None = None) -> bytes:
    """Returns the compressed buffer in the framing that Kafka's clients expect."""
    match codec:
        case Codec.NONE:
            return bytes(buffer)
        case Codec.GZIP:
            return _gzip(buffer, -1 if level is None else level)
        case Codec.SNAPPY:
            return _snappy(buffer)
        case Codec.LZ4:
            return _lz4(buffer, _LZ4_DEFAULT_LEVEL if level is None else level)
        case Codec.ZSTD:
            return _zstd(buffer, _ZSTD_DEFAULT_LEVEL if level is None else level)


def decompress(codec: Codec, buffer: Buffer, max_bytes: int) -> Buffer:
    """Returns the decompressed buffer. Raises CompressionError if it exceeds `max_bytes`.

    The memory used is proportional to the result and exceeds the bound by at most one block of
    the codec, whatever lengths the bytes claim.
    """
    match codec:
        case Codec.NONE:
            expanded: Buffer = buffer
        case Codec.GZIP:
            expanded = _gunzip(buffer, max_bytes)
        case Codec.SNAPPY:
            expanded = _unsnappy(buffer, max_bytes)
        case Codec.LZ4:
            expanded = _unlz4(buffer, max_bytes)
        case Codec.ZSTD:
            expanded = _unzstd(buffer, max_bytes)
    if len(expanded) > max_bytes:
        raise _beyond(codec, max_bytes)
    return expanded


def _beyond(codec: Codec, max_bytes: int) -> CompressionError:
    return CompressionError(f"The {codec.name} data expands beyond {max_bytes} bytes.")


_FIRST_STEP_BYTES = 64 * 1024
_LAST_STEP_BYTES = 256 * 1024


def _read_in_steps(read: Callable[[int], bytes], max_bytes: int) -> bytearray:
    """Reads to the end, or just beyond the bound, allocating memory as bytes arrive."""
    expanded = bytearray()
    step = _FIRST_STEP_BYTES
    while len(expanded) <= max_bytes:
        piece = read(min(step, max_bytes + 1 - len(expanded)))
        if not piece:
            break
        expanded += piece
        step = min(2 * step, _LAST_STEP_BYTES)
    return expanded


# gzip: one member, or several one after the other.

GZIP_WINDOW_BITS = 31  # the largest window, 2^15, in the gzip container rather than zlib's own


def _gzip(buffer: Buffer, level: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, GZIP_WINDOW_BITS)
    return stream.compress(buffer) + stream.flush()


def _gunzip(buffer: Buffer, max_bytes: int) -> Buffer:
    stream = zlib.decompressobj(GZIP_WINDOW_BITS)
    rest: Buffer = buffer

    def read(size: int) -> bytes:
        nonlocal stream, rest
        piece = b""
        while not piece and not (stream.eof and not stream.unused_data):
            if stream.eof:
                rest = stream.unused_data
                stream = zlib.decompressobj(GZIP_WINDOW_BITS)
            piece = stream.decompress(rest, size)
            rest = stream.unconsumed_tail
            if not piece and not stream.eof:
                raise CompressionError("The GZIP data is truncated.")
        return piece

    try:
        return _read_in_steps(read, max_bytes)
    except zlib.error as error:
        raise CompressionError(f"The GZIP data is corrupt: {error}.") from None


# snappy, in the framing of xerial's Java library: a 16-byte header, then blocks of
# an int32 length and a raw snappy block, each of at most 32 KiB before compression.
# Raw snappy without the framing is read too, as Java does.

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, oldest compatible version
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_LENGTH = struct.Struct(">i")
_SNAPPY_MAX_RATIO = 32  # a copy of 64 bytes takes 3, so that no valid block claims more


def _snappy(buffer: Buffer) -> bytes:
    from cramjam import snappy

    framed = bytearray(_XERIAL_HEADER)
    with memoryview(buffer) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES])
            framed += _XERIAL_LENGTH.pack(len(block))
            framed += block
    return bytes(framed)


def _unsnappy(buffer: Buffer, max_bytes: int) -> Buffer:
    from cramjam import DecompressionError

    with memoryview(buffer) as view:
        framed = bytes(view[: len(XERIAL_MAGIC)]) == XERIAL_MAGIC
        expanded = bytearray()
        try:
            for block in iterate_xerial_blocks(view) if framed else [view]:
                expanded += _unsnappy_block(block, len(expanded), max_bytes)
        except DecompressionError as error:
            raise CompressionError(f"The SNAPPY data is corrupt: {error}.") from None
    return expanded


def iterate_xerial_blocks(view: memoryview) -> Iterator[memoryview]:
    """Yields the raw blocks after the header. Raises CompressionError for a wrong length."""
    position = len(_XERIAL_HEADER)
    while position < len(view):
        start = position + _XERIAL_LENGTH.size
        if start > len(view):
            raise CompressionError("The SNAPPY data is truncated.")
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        position = start + length
        if length <= 0 or position > len(view):
            raise CompressionError(f"A SNAPPY block claims to be {length} bytes long.")
        yield view[start:position]


def _unsnappy_block(block: memoryview, start: int, max_bytes: int) -> Any:
    from cramjam import snappy

    claimed = snappy.decompress_raw_len(block)
    if claimed > max_bytes - start:
        raise _beyond(Codec.SNAPPY, max_bytes)
    if claimed > len(block) * _SNAPPY_MAX_RATIO:
        raise CompressionError(f"A SNAPPY block of {len(block)} bytes claims to hold {claimed}.")
    return snappy.decompress_raw(block)


# lz4: one frame of independent 64 KiB blocks without checksums. Java cannot read linked blocks, so
# that none are accepted from producers; they are read.

LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DEFAULT_LEVEL = 9
_LZ4_FAST = 0


def _lz4(buffer: Buffer, level: int) -> bytes:
    import lz4.frame

    compressed: bytes = lz4.frame.compress(
        buffer,
        # Kafka's default level means the fast compressor, every other level the slow one.
        compression_level=_LZ4_FAST if level == _LZ4_DEFAULT_LEVEL else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return compressed


def _unlz4(buffer: Buffer, max_bytes: int) -> Buffer:
    import lz4.frame

    stream = lz4.frame.LZ4FrameDecompressor()
    rest: Buffer = buffer

    def read(size: int) -> bytes:
        nonlocal rest, stream
        if stream.eof:
            rest = stream.unused_data or b""
            if not rest.startswith(LZ4_MAGIC):
                return b""  # Java ignores other bytes after a frame
            stream = lz4.frame.LZ4FrameDecompressor()
        piece: bytes = stream.decompress(rest, max_length=size)
        rest = b""  # the stream keeps what it has not used
        if not piece and not stream.eof:
            raise CompressionError("The LZ4 data is truncated.")
        return piece

    try:
        return _read_in_steps(read, max_bytes)
    except (RuntimeError, EOFError, ValueError) as error:
        raise CompressionError(f"The LZ4 data is corrupt: {error}.") from None


# zstd: one frame or more, with or without the size of their content.

_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_MAX_WINDOW_BYTES = 1 << 27  # what Java accepts
_ZSTD_USUAL_RATIO = 16  # up to which a frame is decompressed in one step, which is faster


class _ZstdContexts(threading.local):
    """Contexts are expensive to create and are not thread-safe."""

    def __init__(self) -> None:
        self.compressors: dict[int, ZstdCompressor] = {}
        self.decompressor: ZstdDecompressor | None = None


_zstd_contexts = _ZstdContexts()


def _zstd(buffer: Buffer, level: int) -> bytes:
    import zstandard

    compressor = _zstd_contexts.compressors.get(level)
    if compressor is None:
        compressor = zstandard.ZstdCompressor(level=level)
        _zstd_contexts.compressors[level] = compressor
    return compressor.compress(buffer)


def zstd_decompressor() -> ZstdDecompressor:
    """Returns this thread's decompressor; one frame is decompressed at a time."""
    decompressor = _zstd_contexts.decompressor
    if decompressor is None:
        import zstandard

        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
        _zstd_contexts.decompressor = decompressor
    return decompressor


def _unzstd(buffer: Buffer, max_bytes: int) -> Buffer:
    import zstandard

    decompressor = zstd_decompressor()
    capacity = min(max_bytes, _ZSTD_USUAL_RATIO * len(buffer))
    try:
        if 0 <= zstandard.frame_content_size(buffer) <= capacity:
            return decompressor.decompress(buffer, capacity, allow_extra_data=False)
    except zstandard.ZstdError:
        pass  # it is not exactly one frame
    try:
        # A truncated frame is not detected here; its records will be found malformed.
        with decompressor.stream_reader(buffer, read_across_frames=True) as reader:
            return _read_in_steps(reader.read, max_bytes)
    except zstandard.ZstdError as error:
        raise CompressionError(f"The ZSTD data is corrupt: {error}.") from None
