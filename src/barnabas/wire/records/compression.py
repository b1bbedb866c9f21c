"""The codecs a batch can be compressed with, each bounded in what it may expand to.

A codec's library is imported when the first batch needs it: most brokers never touch a
compressed record, since batches are stored as they were sent.
"""

import struct
import zlib
from enum import IntEnum
from typing import Any, TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError

Buffer: TypeAlias = bytes | bytearray | memoryview


class Codec(IntEnum):
    """The compression type in bits 0-2 of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class CompressionError(KafkaError):
    """The bytes are not what the codec writes, or expand beyond the bound."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


def compress(codec: Codec, buffer: Buffer, level: int | None = None) -> bytes:
    """The buffer in the framing Kafka's clients expect of the codec."""
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
    """What the buffer expands to, or CompressionError if that is more than `max_bytes`.

    The memory taken is in proportion to the result and never beyond the bound by more than
    a block of the codec, whatever lengths the bytes claim.
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


# gzip, one or more members one after the other.

_GZIP_WINDOW = 31  # the largest window, in the gzip container rather than zlib's own


def _gzip(buffer: Buffer, level: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, _GZIP_WINDOW)
    return stream.compress(buffer) + stream.flush()


def _gunzip(buffer: Buffer, max_bytes: int) -> bytes:
    members: list[bytes] = []
    rest: Buffer = buffer
    room = max_bytes + 1
    while len(rest) > 0 and room > 0:
        stream = zlib.decompressobj(_GZIP_WINDOW)
        try:
            member = stream.decompress(rest, room)
            if not stream.eof and len(member) < room:
                raise CompressionError("The GZIP data ends before its last block.")
        except zlib.error as error:
            raise CompressionError(f"The GZIP data is broken: {error}.") from None
        members.append(member)
        room -= len(member)
        rest = stream.unused_data
    return members[0] if len(members) == 1 else b"".join(members)


# snappy, in the framing of xerial's Java library: a 16-byte header, then blocks of
# an int32 length and a raw snappy block, each of at most 32 KiB before compression.

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)  # version, oldest compatible version
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL_LENGTH = struct.Struct(">i")
_SNAPPY_MAX_RATIO = 32  # a copy of 64 bytes takes 3; no block claiming more is honest


def _snappy(buffer: Buffer) -> bytes:
    from cramjam import snappy

    framed = bytearray(_XERIAL_HEADER)
    with memoryview(buffer) as view:
        for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
            block = bytes(snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
            framed += _XERIAL_LENGTH.pack(len(block))
            framed += block
    return bytes(framed)


def _unsnappy(buffer: Buffer, max_bytes: int) -> Buffer:
    from cramjam import DecompressionError, snappy

    try:
        with memoryview(buffer) as view:
            if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
                return _raw_snappy(snappy, view, max_bytes)
            return _xerial(snappy, view, max_bytes)
    except DecompressionError as error:
        raise CompressionError(f"The SNAPPY data is broken: {error}.") from None


def _xerial(snappy: Any, view: memoryview, max_bytes: int) -> bytearray:
    expanded = bytearray()
    position = len(_XERIAL_HEADER)
    while position < len(view):
        start = position + _XERIAL_LENGTH.size
        if start > len(view):
            raise CompressionError("The SNAPPY data ends in the length of a block.")
        (length,) = _XERIAL_LENGTH.unpack_from(view, position)
        position = start + length
        if length <= 0 or position > len(view):
            raise CompressionError(f"A SNAPPY block claims {length} bytes.")
        expanded += _raw_snappy(snappy, view[start:position], max_bytes - len(expanded))
    return expanded


def _raw_snappy(snappy: Any, block: memoryview, max_bytes: int) -> bytes:
    claimed = snappy.decompress_raw_len(block)
    if claimed > max_bytes:
        raise _beyond(Codec.SNAPPY, max_bytes)
    if claimed > len(block) * _SNAPPY_MAX_RATIO:
        raise CompressionError(f"A SNAPPY block of {len(block)} bytes claims to be {claimed}.")
    return bytes(snappy.decompress_raw(block))


# lz4, one frame of independent 64 KiB blocks without checksums: Java refuses linked blocks.

_LZ4_DEFAULT_LEVEL = 9
_LZ4_FAST = 0


def _lz4(buffer: Buffer, level: int) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]

    compressed: bytes = lz4.frame.compress(
        buffer,
        # Kafka's default level means the fast compressor; every other one means HC.
        compression_level=_LZ4_FAST if level == _LZ4_DEFAULT_LEVEL else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        content_checksum=False,
        block_checksum=False,
        store_size=False,
    )
    return compressed


def _unlz4(buffer: Buffer, max_bytes: int) -> bytes:
    import lz4.frame  # type: ignore[import-untyped]

    try:
        if lz4.frame.get_frame_info(buffer)["block_linked"]:
            raise CompressionError("The LZ4 frame has linked blocks, which clients cannot read.")
        stream = lz4.frame.LZ4FrameDecompressor()
        expanded: bytes = stream.decompress(buffer, max_length=max_bytes + 1)
    except (RuntimeError, EOFError, ValueError) as error:
        raise CompressionError(f"The LZ4 data is broken: {error}.") from None
    if not stream.eof and len(expanded) <= max_bytes:
        raise CompressionError("The LZ4 frame ends before its end mark.")
    return expanded


# zstd, one or more frames, with or without the content size in their headers.

_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_MAX_WINDOW_BYTES = 1 << 27  # what every decoder must accept, and Java does


def _zstd(buffer: Buffer, level: int) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=level).compress(buffer)


def _unzstd(buffer: Buffer, max_bytes: int) -> bytes:
    import zstandard

    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_MAX_WINDOW_BYTES)
    try:
        with decompressor.stream_reader(buffer, read_across_frames=True) as reader:
            return reader.read(max_bytes + 1)
    except zstandard.ZstdError as error:
        raise CompressionError(f"The ZSTD data is broken: {error}.") from None
