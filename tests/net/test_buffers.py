"""Memory for received frames is bounded, reused, and grows with the bytes that arrive."""

import mmap

import pytest

from barnabas.net.buffers import (
    FIRST_STEP_BYTES,
    MAX_RETAINED_BUFFER_BYTES,
    BufferPool,
    BuffersExhausted,
)

PAGE = mmap.PAGESIZE


def test_a_released_buffer_is_reused() -> None:
    buffers = BufferPool(1 << 20)
    first = buffers.acquire(PAGE + 1)
    memory = first._memory
    first.release()
    assert buffers.acquire(2 * PAGE)._memory is memory


def test_memory_in_use_is_counted_and_bounded() -> None:
    buffers = BufferPool(4 * PAGE)
    held = [buffers.acquire(1) for _ in range(4)]
    with pytest.raises(BuffersExhausted, match=r"queued\.max\.request\.bytes"):
        buffers.acquire(1)
    held.pop().release()
    buffers.acquire(1)
    assert buffers.used_bytes == 4 * PAGE


def test_memory_retained_for_reuse_is_bounded() -> None:
    buffers = BufferPool(1 << 30, retained_bytes=4 * PAGE)
    for buffer in [buffers.acquire(2 * PAGE) for _ in range(5)]:
        buffer.release()
    assert buffers._free_bytes == 4 * PAGE
    buffers.acquire(2 * MAX_RETAINED_BUFFER_BYTES).release()
    assert buffers._free_bytes == 4 * PAGE
    assert buffers.used_bytes == 0


def test_a_buffer_that_grows_keeps_its_bytes() -> None:
    buffers = BufferPool(1 << 30)
    buffer = buffers.acquire(FIRST_STEP_BYTES)
    buffer.append(memoryview(b"x" * FIRST_STEP_BYTES))
    buffer.reserve(10 * FIRST_STEP_BYTES)
    assert len(buffer.view) == 2 * FIRST_STEP_BYTES, "it grows by one step"
    assert buffer.view[: buffer.filled] == b"x" * FIRST_STEP_BYTES
    assert buffers.used_bytes == 2 * FIRST_STEP_BYTES
    buffer.release()
    assert buffers.used_bytes == 0


def test_a_buffer_cannot_grow_beyond_the_limit_and_the_count_stays_right() -> None:
    buffers = BufferPool(FIRST_STEP_BYTES)
    buffer = buffers.acquire(FIRST_STEP_BYTES)
    with pytest.raises(BuffersExhausted):
        buffer.reserve(2 * FIRST_STEP_BYTES)
    buffer.release()
    assert buffers.used_bytes == 0


def test_a_buffer_can_grow_while_a_delayed_request_refers_to_its_memory() -> None:
    buffers = BufferPool(1 << 30)
    buffer = buffers.acquire(PAGE)
    buffer.append(memoryview(b"old"))
    kept = buffer.view[:3]
    buffer.release()
    again = buffers.acquire(PAGE)
    again.append(memoryview(b"new"))
    again.reserve(4 * PAGE)
    assert again.view[:3] == b"new"
    assert kept == b"new", "its memory is reused: release does not wait for views"
    again.release()


def test_consuming_bytes_moves_the_rest_to_the_front() -> None:
    buffer = BufferPool(1 << 20).acquire(PAGE)
    buffer.append(memoryview(b"handled, waiting"))
    buffer.consume(9)
    assert buffer.view[: buffer.filled] == b"waiting"


def test_appending_grows_the_buffer_as_needed() -> None:
    buffer = BufferPool(1 << 30).acquire(PAGE)
    buffer.append(memoryview(b"a" * PAGE))
    buffer.append(memoryview(b"b" * 3 * FIRST_STEP_BYTES))
    assert buffer.filled == PAGE + 3 * FIRST_STEP_BYTES
    assert buffer.view[PAGE - 1 : PAGE + 1] == b"ab"


def test_memory_that_is_released_when_unused_is_reused_after_its_last_view() -> None:
    buffers = BufferPool(1 << 20)
    buffer = buffers.acquire(2 * PAGE)
    buffer.append(memoryview(b"kept"))
    kept = buffer.view[:4]
    memory = buffer._memory
    assert buffer.is_referenced
    buffer.release_when_unused()
    assert buffers.used_bytes == 0
    other = buffers.acquire(2 * PAGE)
    assert other._memory is not memory
    assert kept == b"kept"
    del kept
    assert buffers.acquire(2 * PAGE)._memory is memory, "reused, now that no view is left"


def test_memory_without_views_is_released_at_once() -> None:
    buffers = BufferPool(1 << 20)
    buffer = buffers.acquire(PAGE)
    memory = buffer._memory
    assert not buffer.is_referenced
    buffer.release_when_unused()
    assert buffers.acquire(PAGE)._memory is memory
