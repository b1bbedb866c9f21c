"""Memory for requests is bounded, reused, and grows with what arrives."""

import mmap

import pytest

from barnabas.net.buffers import FIRST_STEP_BYTES, MAX_RETAINED_BUFFER_BYTES, BufferPool, BuffersExhausted

PAGE = mmap.PAGESIZE


def test_a_buffer_that_was_given_back_is_used_again() -> None:
    buffers = BufferPool(1 << 20)
    first = buffers.acquire(PAGE + 1)
    memory = first._memory
    first.release()
    assert buffers.acquire(2 * PAGE)._memory is memory


def test_what_is_handed_out_is_counted_and_bounded() -> None:
    buffers = BufferPool(4 * PAGE)
    held = [buffers.acquire(1) for _ in range(4)]
    with pytest.raises(BuffersExhausted, match=r"queued\.max\.request\.bytes"):
        buffers.acquire(1)
    held.pop().release()
    buffers.acquire(1)
    assert buffers.used_bytes == 4 * PAGE


def test_what_is_kept_for_reuse_is_bounded() -> None:
    buffers = BufferPool(1 << 30, retained_bytes=4 * PAGE)
    for buffer in [buffers.acquire(2 * PAGE) for _ in range(5)]:
        buffer.release()
    assert buffers._free_bytes == 4 * PAGE
    buffers.acquire(2 * MAX_RETAINED_BUFFER_BYTES).release()
    assert buffers._free_bytes == 4 * PAGE
    assert buffers.used_bytes == 0


def test_growing_keeps_what_was_received() -> None:
    buffers = BufferPool(1 << 30)
    buffer = buffers.acquire(FIRST_STEP_BYTES)
    buffer.append(memoryview(b"x" * FIRST_STEP_BYTES))
    buffer.reserve(10 * FIRST_STEP_BYTES)
    assert len(buffer.view) == 2 * FIRST_STEP_BYTES, "by a step, not at once"
    assert buffer.view[: buffer.filled] == b"x" * FIRST_STEP_BYTES
    assert buffers.used_bytes == 2 * FIRST_STEP_BYTES
    buffer.release()
    assert buffers.used_bytes == 0


def test_growing_beyond_the_limit_is_refused_and_leaves_the_count_right() -> None:
    buffers = BufferPool(FIRST_STEP_BYTES)
    buffer = buffers.acquire(FIRST_STEP_BYTES)
    with pytest.raises(BuffersExhausted):
        buffer.reserve(2 * FIRST_STEP_BYTES)
    buffer.release()
    assert buffers.used_bytes == 0


def test_memory_that_a_parked_request_still_refers_to_can_grow_too() -> None:
    buffers = BufferPool(1 << 30)
    buffer = buffers.acquire(PAGE)
    buffer.append(memoryview(b"old"))
    kept = buffer.view[:3]
    buffer.release()
    again = buffers.acquire(PAGE)
    again.append(memoryview(b"new"))
    again.reserve(4 * PAGE)
    assert again.view[:3] == b"new"
    assert kept == b"new", "its memory was reused, which is all that was promised"
    again.release()


def test_dropping_moves_the_rest_to_the_front() -> None:
    buffer = BufferPool(1 << 20).acquire(PAGE)
    buffer.append(memoryview(b"handled, waiting"))
    buffer.consume(9)
    assert buffer.view[: buffer.filled] == b"waiting"


def test_bytes_that_have_arrived_always_fit() -> None:
    buffer = BufferPool(1 << 30).acquire(PAGE)
    buffer.append(memoryview(b"a" * PAGE))
    buffer.append(memoryview(b"b" * 3 * FIRST_STEP_BYTES))
    assert buffer.filled == PAGE + 3 * FIRST_STEP_BYTES
    assert buffer.view[PAGE - 1 : PAGE + 1] == b"ab"


def test_memory_that_somebody_still_sees_is_left_to_them() -> None:
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
    assert buffers.acquire(2 * PAGE)._memory is memory, "used again, now that nobody sees it"


def test_memory_that_nobody_sees_goes_back_at_once() -> None:
    buffers = BufferPool(1 << 20)
    buffer = buffers.acquire(PAGE)
    memory = buffer._memory
    assert not buffer.is_referenced
    buffer.release_when_unused()
    assert buffers.acquire(PAGE)._memory is memory
