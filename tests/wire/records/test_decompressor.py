"""A reused buffer gives what a fresh one does, and nobody sees it after it is used again."""

import threading
import tracemalloc
from collections.abc import Callable
from random import Random

import cramjam
import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.wire.records.samples import law

from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.compression import Codec, CompressionError, compress, decompress
from barnabas.wire.records.decompressor import (
    MAX_KEPT_BYTES,
    Decompressor,
    borrow_decompressor,
    decompress_for_validation,
    decompress_temporarily,
    give_back_decompressor,
)

COMPRESSING = [codec for codec in Codec if codec is not Codec.NONE]
TEXT = b"the castle hill was hidden, veiled in mist and darkness; " * 2000
MIB = 1 << 20

compressing = pytest.mark.parametrize("codec", COMPRESSING)


def outcome(read: Callable[[], bytes | bytearray | memoryview]) -> bytes | tuple[ErrorCode, str]:
    try:
        return bytes(read())
    except CompressionError as error:
        return error.code, error.message


contents = st.builds(
    lambda piece, times: piece * times, st.binary(max_size=900), st.integers(1, 99)
)


@law
@given(st.sampled_from(COMPRESSING), st.lists(contents, max_size=4), st.integers(0, 200_000))
def test_results_are_those_of_a_fresh_buffer_until_the_clear(
    codec: Codec, pieces: list[bytes], max_bytes: int
) -> None:
    decompressor = Decompressor(80_000)
    for _ in range(2):
        decompressor.clear()
        compressed = [compress(codec, piece) for piece in pieces]
        results = [
            outcome(lambda each=each: decompressor.decompress(codec, each, max_bytes))
            for each in compressed
        ]
        assert results == [
            outcome(lambda each=each: decompress(codec, each, max_bytes)) for each in compressed
        ]


@law
@given(st.sampled_from(COMPRESSING), contents, st.data())
def test_damaged_data_has_the_outcome_of_a_fresh_buffer(
    codec: Codec, content: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(compress(codec, content))
    for _ in range(data.draw(st.integers(0, 2))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    del damaged[data.draw(st.integers(0, len(damaged))) :]
    damaged += data.draw(st.sampled_from([b"", b"x", bytes(9), compress(codec, b"more")]))
    assert outcome(lambda: decompress_temporarily(codec, damaged, MIB)) == outcome(
        lambda: decompress(codec, damaged, MIB)
    )


@compressing
def test_the_size_limit_is_exact(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    decompress_temporarily(codec, compressed, MIB)  # the buffer is larger than the limit from here
    assert decompress_temporarily(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(CompressionError, match=f"beyond {len(TEXT) - 1} bytes"):
        decompress_temporarily(codec, compressed, len(TEXT) - 1)


@compressing
def test_a_decompression_bomb_needs_no_more_memory_than_the_limit(codec: Codec) -> None:
    bomb = compress(codec, bytes(64 * MIB))
    decompressor = Decompressor()
    decompressor.decompress(codec, compress(codec, b"warm"), 10)  # the library is imported
    tracemalloc.start()
    try:
        with pytest.raises(CompressionError):
            decompressor.decompress(codec, bomb, 4 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 6 * MIB


@compressing
def test_large_results_are_not_kept(codec: Codec) -> None:
    compressed = compress(codec, bytes(2 * MAX_KEPT_BYTES))
    decompressor = Decompressor()
    for _ in range(2):
        assert len(decompressor.decompress(codec, compressed, 64 * MIB)) == 2 * MAX_KEPT_BYTES
        decompressor.clear()
        assert decompressor.kept_bytes <= MAX_KEPT_BYTES


@compressing
def test_the_buffer_grows_until_the_usual_results_fit(codec: Codec) -> None:
    compressed = compress(codec, TEXT)
    decompressor = Decompressor()
    for _ in range(2):
        results = [decompressor.decompress(codec, compressed, MIB) for _ in range(3)]
        assert results == [TEXT] * 3
        decompressor.clear()
    assert decompressor.kept_bytes > 3 * len(TEXT)
    assert isinstance(decompressor.decompress(codec, compressed, MIB), memoryview)


@compressing
def test_a_borrowed_buffer_is_not_used_by_others(codec: Codec) -> None:
    mine = borrow_decompressor()
    read = mine.decompress(codec, compress(codec, b"mine"), MIB)
    assert decompress_temporarily(codec, compress(codec, b"other"), MIB) == b"other"
    other = borrow_decompressor()
    assert other.decompress(codec, compress(codec, b"another"), MIB) == b"another"
    assert read == b"mine"
    give_back_decompressor(other)
    give_back_decompressor(mine)
    assert borrow_decompressor() is other


@compressing
def test_each_thread_has_its_own_buffer(codec: Codec) -> None:
    read = decompress_temporarily(codec, compress(codec, b"mine"), MIB)
    thread = threading.Thread(
        target=decompress_temporarily, args=(codec, compress(codec, b"another"), MIB)
    )
    thread.start()
    thread.join()
    assert read == b"mine"


@pytest.mark.parametrize("has_checksums", [False, True])
def test_linked_lz4_blocks_are_read_but_not_accepted_from_producers(has_checksums: bool) -> None:
    linked = lz4.frame.compress(
        TEXT, block_linked=True, block_checksum=has_checksums, content_checksum=has_checksums
    )
    assert decompress_temporarily(Codec.LZ4, linked, MIB) == TEXT
    with pytest.raises(CompressionError, match="linked"):
        decompress_for_validation(Codec.LZ4, linked, MIB)


@pytest.mark.parametrize("has_checksums", [False, True])
@pytest.mark.parametrize("has_size", [False, True])
def test_of_a_producers_lz4_frames_only_the_first_is_read(
    has_checksums: bool, has_size: bool
) -> None:
    frame = lz4.frame.compress(
        TEXT,
        block_linked=False,
        store_size=has_size,
        block_checksum=has_checksums,
        content_checksum=has_checksums,
    )
    assert decompress_for_validation(Codec.LZ4, frame, MIB) == TEXT
    assert decompress_for_validation(Codec.LZ4, frame + frame, MIB) == TEXT
    assert decompress_for_validation(Codec.LZ4, frame + b"other", MIB) == TEXT
    for length in (5, 9, len(frame) - 1):
        with pytest.raises(CompressionError):
            decompress_for_validation(Codec.LZ4, frame[:length], MIB)


def test_zstd_frames_without_content_size_are_read() -> None:
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    assert decompress_for_validation(Codec.ZSTD, frame, MIB) == TEXT
    assert decompress_for_validation(Codec.ZSTD, frame + frame, MIB) == TEXT + TEXT


def test_all_zstd_frames_are_read_in_memory_of_their_own_too() -> None:
    content = Random(1).randbytes(5000)
    frame = zstandard.ZstdCompressor(write_content_size=False).compress(content)
    assert decompress(Codec.ZSTD, frame + frame, MIB) == content + content


def test_snappy_is_read_with_and_without_the_framing() -> None:
    raw = bytes(cramjam.snappy.compress_raw(TEXT))
    assert decompress_for_validation(Codec.SNAPPY, raw, MIB) == TEXT
    assert decompress_for_validation(Codec.SNAPPY, compress(Codec.SNAPPY, TEXT), MIB) == TEXT
