"""A log that is not in the page cache is read after it was loaded, and never waits for the disk."""

import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.log.log_test_directory import SMALL, LogTestDirectory, append, fill
from tests.page_cache import evict

from barnabas.log import ColdRead, Log, LogConfig, LogSlice, pread_cached
from barnabas.log.segments.page_cache import LOAD_BYTES, NotCached

LARGE = LogConfig(segment_bytes=1 << 30)
VALUE_BYTES = 100_000
BATCHES = 2 * LOAD_BYTES // VALUE_BYTES + 5


def never_cached(fd: int, count: int, position: int) -> bytes:
    raise NotCached(position)


@pytest.fixture
def large(log_dir: LogTestDirectory) -> Log:
    """A log of one segment, which takes several loads."""
    log = log_dir.create(LARGE)
    for number in range(BATCHES):
        append(log, number.to_bytes(4, "big") * (VALUE_BYTES // 4))
    return log


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


def file_of(log: Log) -> Path:
    return Path(log.segments.active.path())


def load_and_repeat(read: Callable[[], LogSlice | None]) -> tuple[LogSlice | None, int]:
    """Returns the result of a read, and how often something had to be loaded for it."""
    for loads in range(10):
        try:
            return read(), loads
        except ColdRead as cold:
            cold.load()
    raise AssertionError("the read still misses something")


def send_all(slice_: LogSlice, pair: tuple[socket.socket, socket.socket]) -> tuple[bytes, int]:
    """Returns the bytes that arrive, and how often something had to be loaded for them."""
    received, sent, loads = bytearray(), 0, 0
    while sent < slice_.size_bytes:
        try:
            sent += slice_.send(
                partial(os.sendfile, pair[0].fileno()), sent, slice_.size_bytes - sent
            )
        except ColdRead as cold:
            cold.load()
            loads += 1
        while len(received) < sent:
            received += pair[1].recv(1 << 20)
    return bytes(received), loads


def test_the_first_search_of_an_old_segment_loads_its_index(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    log = log_dir.stop_and_reopen()

    def read() -> LogSlice | None:
        return log.read(0, 500, upto=log.log_end_offset, pread=pread_cached)

    with pytest.raises(ColdRead) as cold:
        read()
    cold.value.load()
    assert load_and_repeat(read)[0] is not None
    assert log.read(1, 500, upto=log.log_end_offset, pread=pread_cached) is not None


def test_an_index_is_loaded_again_when_the_kernel_may_have_evicted_it(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create()
    fill(log, 100)
    log_dir.directory.files.generation += 1

    def read() -> LogSlice | None:
        return log.read(50, 500, upto=100, pread=pread_cached)

    assert load_and_repeat(read)[1] == 1
    assert load_and_repeat(read)[1] == 0


def test_a_new_segment_needs_no_load(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    assert len(log.segments) > 1
    for offset in range(100):
        assert log.read(offset, 500, upto=100, pread=pread_cached) is not None


def test_readers_at_the_end_of_a_reopened_log_need_no_index(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 100)
    log = log_dir.stop_and_reopen()
    append(log, b"next")
    continued = log.read(100, 500, upto=101, pread=pread_cached)
    assert continued is not None
    assert continued.next_offset == 101


def test_a_read_that_waits_needs_no_load(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 100)
    log = log_dir.stop_and_reopen()
    assert log.read(0, 500, upto=100) is not None


def test_headers_that_are_not_cached_are_loaded(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 5)
    with pytest.raises(ColdRead) as cold:
        log.read(2, 10, upto=5, pread=never_cached)
    cold.value.load()


def test_an_evicted_log_is_read_to_its_end(log_dir: LogTestDirectory) -> None:
    fill(log_dir.create(), 300)
    log = log_dir.stop_and_reopen()
    segments = sorted(log_dir.folder().glob("*.log"))
    expected = b"".join(path.read_bytes() for path in segments)
    for path in segments:
        evict(path)
    offset, loads, content = 0, 0, b""
    while offset < log.log_end_offset:
        at = offset
        part, more = load_and_repeat(
            lambda at=at: log.read(at, 700, upto=log.log_end_offset, pread=pread_cached)  # type: ignore[misc]
        )
        assert part is not None
        offset, loads, content = part.next_offset, loads + more, content + part.read()
    assert content == expected
    assert loads >= len(log.segments)


def test_an_evicted_slice_is_sent_in_parts_that_were_loaded(
    large: Log, pair: tuple[socket.socket, socket.socket]
) -> None:
    slice_ = large.read(0, 1 << 30, upto=BATCHES)
    assert slice_ is not None
    expected = slice_.read()
    evict(file_of(large))
    received, loads = send_all(slice_, pair)
    assert received == expected
    assert loads >= 1


def test_a_slice_in_the_page_cache_is_sent_without_a_load(
    large: Log, pair: tuple[socket.socket, socket.socket]
) -> None:
    slice_ = large.read(0, 1 << 30, upto=BATCHES)
    assert slice_ is not None
    assert send_all(slice_, pair) == (slice_.read(), 0)


def test_no_more_of_a_slice_is_sent_at_a_time_than_is_cached(
    large: Log, pair: tuple[socket.socket, socket.socket]
) -> None:
    slice_ = large.read(0, 1 << 30, upto=BATCHES)
    assert slice_ is not None
    pair[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    cached_bytes = LOAD_BYTES // 2
    evict(file_of(large), but_for_bytes=cached_bytes)
    assert slice_.send(partial(os.sendfile, pair[0].fileno()), 0, slice_.size_bytes) <= cached_bytes


def test_a_small_slice_is_read_once_it_was_loaded(large: Log) -> None:
    slice_ = large.read(3, VALUE_BYTES + 1000, upto=BATCHES)
    assert slice_ is not None
    expected = slice_.read()
    evict(file_of(large))
    with pytest.raises(ColdRead) as cold:
        slice_.read_cached()
    cold.value.load()
    assert slice_.read_cached() == expected


def test_a_loaded_slice_is_read_even_if_the_page_cache_lost_it_again(large: Log) -> None:
    slice_ = large.read(3, VALUE_BYTES + 1000, upto=BATCHES)
    assert slice_ is not None
    evict(file_of(large))
    with pytest.raises(ColdRead) as cold:
        slice_.read_cached()
    cold.value.load()
    evict(file_of(large))
    assert len(slice_.read_cached()) == slice_.size_bytes


def test_a_load_keeps_the_file_of_a_deleted_segment_open(
    log_dir: LogTestDirectory, large: Log
) -> None:
    slice_ = large.read(0, VALUE_BYTES + 1000, upto=BATCHES)
    assert slice_ is not None
    evict(file_of(large))
    with pytest.raises(ColdRead) as cold:
        slice_.read_cached()
    del slice_
    large.truncate_fully_and_start_at(1000)
    log_dir.delete_due(now_ms=1 << 50)
    cold.value.load()


def test_a_slice_of_a_truncated_file_does_not_exist(large: Log) -> None:
    slice_ = large.read(0, VALUE_BYTES + 1000, upto=BATCHES)
    assert slice_ is not None
    os.truncate(file_of(large), 1000)
    with pytest.raises(EOFError, match="1000 of"):
        slice_.read_cached()


def test_what_follows_a_slice_can_be_loaded_ahead(large: Log) -> None:
    slice_ = large.read(0, VALUE_BYTES + 1000, upto=BATCHES)
    assert slice_ is not None
    assert slice_.next_cold_read() is None
    evict(file_of(large))
    cold = slice_.next_cold_read()
    assert cold is not None
    cold.load()
    assert slice_.next_cold_read() is None


def test_nothing_follows_the_last_slice(large: Log) -> None:
    slice_ = large.read(BATCHES - 1, 1 << 30, upto=BATCHES)
    assert slice_ is not None
    assert slice_.next_cold_read() is None


def test_small_segments_are_searched_like_large_ones(log_dir: LogTestDirectory) -> None:
    """The same results, however the file is read."""
    log = log_dir.create(SMALL)
    fill(log, 200)
    for offset in range(200):
        waiting = log.read(offset, 300, upto=200)
        cached = log.read(offset, 300, upto=200, pread=pread_cached)
        assert waiting is not None
        assert cached is not None
        assert (cached.position, cached.next_offset) == (waiting.position, waiting.next_offset)
