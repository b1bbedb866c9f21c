"""Plain LZ4 frames against a library's reader, with whole and with damaged frames."""

from collections.abc import Iterator

import lz4.frame
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.uncompiled import compiled_and_plain

from barnabas.wire.records import _lz4_frame

loops = compiled_and_plain(_lz4_frame)

contents = st.one_of(
    st.binary(max_size=2000),
    st.integers(0, 200_000).map(lambda size: bytes(range(256)) * (size // 256)),
)


@given(
    content=contents,
    block_size=st.sampled_from((4, 5, 6, 7)),
    linked=st.booleans(),
    block_checksum=st.booleans(),
    content_checksum=st.booleans(),
    store_size=st.booleans(),
    level=st.sampled_from((0, -5, 9)),
)
def test_frames_of_all_kinds_have_their_content_or_are_declined(
    content: bytes,
    block_size: int,
    linked: bool,
    block_checksum: bool,
    content_checksum: bool,
    store_size: bool,
    level: int,
) -> None:
    frame = lz4.frame.compress(
        content,
        compression_level=level,
        block_size=block_size,
        block_linked=linked,
        block_checksum=block_checksum,
        content_checksum=content_checksum,
        store_size=store_size,
    )
    is_linked = _lz4_frame.has_linked_blocks(frame)
    is_plain = not (is_linked or block_checksum or content_checksum or frame[4] & 0x08)
    room = memoryview(bytearray(len(content) + 10))
    size = _lz4_frame.decompress_plain_into(frame, room)
    assert size == (len(content) if is_plain else None)
    if size is not None:
        assert bytes(room[:size]) == content
    assert _lz4_frame.first_frame_bytes(frame) == len(frame)
    assert _lz4_frame.first_frame_bytes(frame + b"more") == len(frame)


def frame_of(content: bytes) -> bytes:
    return lz4.frame.compress(content, block_linked=False, store_size=False)  # type: ignore[no-any-return]


def test_content_that_does_not_fit_is_declined() -> None:
    frame = frame_of(bytes(100_000))
    assert _lz4_frame.decompress_plain_into(frame, memoryview(bytearray(99_999))) is None
    assert _lz4_frame.decompress_plain_into(frame, memoryview(bytearray(100_000))) == 100_000


def test_content_without_compression_is_copied() -> None:
    content = bytes((number * 7919 + number // 3) & 0xFF for number in range(500))
    room = memoryview(bytearray(600))
    assert _lz4_frame.decompress_plain_into(frame_of(content), room) == 500
    assert bytes(room[:500]) == content


def test_a_second_frame_is_declined() -> None:
    frame = frame_of(b"first") + frame_of(b"second")
    assert _lz4_frame.decompress_plain_into(frame, memoryview(bytearray(100))) is None


@given(
    content=st.binary(max_size=300),
    changes=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=3),
    cut=st.integers(0, 40),
)
def test_damaged_frames_are_declined_or_have_what_the_library_reads(
    content: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    damaged = bytearray(frame_of(content))
    for position, byte in changes:
        damaged[position % len(damaged)] = byte
    frame = bytes(damaged[: len(damaged) - cut])
    room = memoryview(bytearray(1 << 17))
    _lz4_frame.first_frame_bytes(frame)
    size = _lz4_frame.decompress_plain_into(frame, room)
    if size is not None:
        assert bytes(room[:size]) == lz4.frame.decompress(frame)


@pytest.fixture(autouse=True)
def _forget_headers() -> Iterator[None]:
    yield
    _lz4_frame._checked_headers.clear()
