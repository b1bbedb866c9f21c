"""Codecs with Kafka's framing, and their memory limit."""

import struct
import tracemalloc
import zlib
from contextlib import suppress

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law

from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.compression import Codec, CompressionError, compress, decompress

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"the castle hill was hidden, veiled in mist and darkness; " * 2000
MIB = 1 << 20

compressing = pytest.mark.parametrize("codec", COMPRESSING)


@law
@given(st.sampled_from(Codec), st.binary(max_size=2000), st.integers(1, 200))
def test_bytes_are_decompressed_as_they_were(codec: Codec, piece: bytes, times: int) -> None:
    content = piece * times
    assert decompress(codec, compress(codec, content), len(content)) == content


@pytest.mark.parametrize(
    ("codec", "levels"),
    [(Codec.GZIP, (-1, 1, 9)), (Codec.LZ4, (1, 9, 12, 17)), (Codec.ZSTD, (-5, 1, 3, 22))],
)
def test_every_level_is_read_back(codec: Codec, levels: tuple[int, ...]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT, level), len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", Codec)
def test_any_buffer_is_accepted(codec: Codec) -> None:
    view = memoryview(bytearray(b"..." + TEXT))[3:]
    compressed = compress(codec, view)
    assert decompress(codec, memoryview(b"..." + compressed)[3:], len(TEXT)) == TEXT


@pytest.mark.parametrize("codec", Codec)
def test_the_size_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    assert len(decompress(codec, compressed, len(TEXT))) == len(TEXT)
    with pytest.raises(CompressionError) as raised:
        decompress(codec, compressed, len(TEXT) - 1)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


@compressing
def test_a_decompression_bomb_needs_no_more_memory_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    decompress(codec, compress(codec, b"warm"), 10)  # the library is imported
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            decompress(codec, bomb, 4 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * MIB


@compressing
def test_a_small_batch_needs_little_memory_with_a_high_limit(codec: Codec) -> None:
    compressed = compress(codec, b"small")
    decompress(codec, compressed, 10)
    tracemalloc.start()
    try:
        assert decompress(codec, compressed, 1024 * MIB) == b"small"
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MIB


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_truncated_bytes_raise_an_error(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    for length in (0, 1, 5, 17, len(compressed) // 2, len(compressed) - 1):
        with pytest.raises(CompressionError):
            decompress(codec, compressed[:length], len(TEXT))


def test_truncated_zstd_returns_no_more_than_it_has() -> None:
    """Its library raises no error; the number of records in the batch then does not match."""
    compressed = compress(Codec.ZSTD, TEXT)
    assert TEXT.startswith(decompress(Codec.ZSTD, compressed[:-1], len(TEXT)))


@compressing
@law
@given(noise=st.binary(min_size=1, max_size=100))
def test_random_bytes_raise_an_error_or_are_read_within_the_limit(
    codec: Codec, noise: bytes
) -> None:
    with suppress(CompressionError):
        assert len(decompress(codec, noise, 1000)) <= 1000


def test_gzip_members_are_read_one_after_the_other() -> None:
    assert decompress(Codec.GZIP, compress(Codec.GZIP, b"a") * 3, 3) == b"aaa"
    with pytest.raises(CompressionError):
        decompress(Codec.GZIP, compress(Codec.GZIP, b"a") * 3, 2)


def test_gzip_is_not_zlib() -> None:
    with pytest.raises(CompressionError):
        decompress(Codec.GZIP, zlib.compress(b"x"), 10)


def test_snappy_is_framed_in_blocks_of_32_kib() -> None:
    framed = compress(Codec.SNAPPY, TEXT)
    assert framed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    (length,) = struct.unpack_from(">i", framed, 16)
    first = bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + length]))
    assert first == TEXT[: 32 * 1024]


def test_snappy_without_the_framing_is_read() -> None:
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT)), len(TEXT)) == TEXT


@pytest.mark.parametrize(
    "block",
    [
        b"\xff\xff\xff\xff\x0f",  # claims 4 GiB
        b"\x80\x80\x04\x00x",  # claims 64 KiB, and holds one byte
        b"",
    ],
)
def test_a_snappy_block_with_a_huge_size_is_rejected_before_allocation(
    block: bytes,
) -> None:
    header = compress(Codec.SNAPPY, b"")
    for hostile in (block, header + struct.pack(">i", len(block)) + block):
        with pytest.raises(CompressionError):
            decompress(Codec.SNAPPY, hostile, MIB)


@pytest.mark.parametrize("length", [-1, 0, 6, 2**31 - 1])
def test_a_wrong_snappy_block_length_raises_an_error(length: int) -> None:
    framed = compress(Codec.SNAPPY, b"") + struct.pack(">i", length) + b"\x01\x00x"
    with pytest.raises(CompressionError):
        decompress(Codec.SNAPPY, framed, MIB)


def test_an_lz4_frame_has_independent_64_kib_blocks_and_no_checksums() -> None:
    described = lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))
    assert not described["block_linked"]
    assert not described["block_checksum"]
    assert not described["content_checksum"]
    assert not described["content_size"]
    assert described["block_size"] == 64 * 1024


def test_linked_lz4_blocks_which_java_cannot_read_are_read() -> None:
    assert decompress(Codec.LZ4, lz4.frame.compress(TEXT, block_linked=True), len(TEXT)) == TEXT


def test_lz4_frames_are_read_one_after_the_other_and_other_bytes_are_ignored() -> None:
    frames = compress(Codec.LZ4, b"a") + compress(Codec.LZ4, TEXT)
    assert decompress(Codec.LZ4, frames + b"other", MIB) == b"a" + TEXT


def test_zstd_frames_without_content_size_are_read() -> None:
    compressor = zstandard.ZstdCompressor(write_content_size=False)
    assert decompress(Codec.ZSTD, compressor.compress(TEXT), len(TEXT)) == TEXT


def test_zstd_frames_are_read_one_after_the_other() -> None:
    frames = compress(Codec.ZSTD, b"a") + compress(Codec.ZSTD, TEXT)
    assert decompress(Codec.ZSTD, frames, MIB) == b"a" + TEXT


def test_a_zstd_window_above_javas_limit_raises_an_error() -> None:
    frame = bytes.fromhex("28b52ffd") + b"\x00" + b"\x90" + b"\x01\x00\x00"  # 2^28, empty
    with pytest.raises(CompressionError):
        decompress(Codec.ZSTD, frame, MIB)
