"""Reads that do not wait for the disk, on the file system of the tests."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.page_cache import evict

from barnabas.log.segments import page_cache
from barnabas.log.segments.page_cache import SAMPLE_BYTES, NotCached, count_cached, pread_cached

SIZE_BYTES = 8 * SAMPLE_BYTES
CONTENT = bytes(range(256)) * (SIZE_BYTES // 256)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return path


@pytest.fixture
def fd(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture(params=["RWF_NOWAIT", "mincore"])
def detection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which the kernel says what is in memory."""
    if request.param == "RWF_NOWAIT":
        return

    def unsupported(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    monkeypatch.setattr(page_cache, "preadv", unsupported)


@pytest.mark.usefixtures("detection")
def test_a_read_of_evicted_bytes_fails_until_they_are_loaded(path: Path, fd: int) -> None:
    position, count = 3 * SAMPLE_BYTES + 5, 1000
    evict(path)
    with pytest.raises(NotCached) as missing:
        pread_cached(fd, count, position)
    assert missing.value.position == position
    page_cache.load(fd, position, count)
    assert pread_cached(fd, count, position) == CONTENT[position : position + count]
    assert count_cached(fd, position, count) == count


@pytest.mark.usefixtures("detection")
def test_a_read_fails_at_the_first_evicted_page(path: Path, fd: int) -> None:
    evict(path, but_for_bytes=SIZE_BYTES // 2)
    with pytest.raises(NotCached) as missing:
        pread_cached(fd, 100, SIZE_BYTES // 2 - 10)
    assert missing.value.position == SIZE_BYTES // 2
    assert len(pread_cached(fd, 10, SIZE_BYTES // 2 - 10)) == 10


@pytest.mark.usefixtures("detection")
def test_nothing_of_an_evicted_file_is_cached(path: Path, fd: int) -> None:
    evict(path)
    assert count_cached(fd, SAMPLE_BYTES, SAMPLE_BYTES) == 0


@pytest.mark.usefixtures("detection")
def test_evicted_bytes_are_never_counted_as_cached(path: Path, fd: int) -> None:
    cached_bytes = 4 * SAMPLE_BYTES
    evict(path, but_for_bytes=cached_bytes)
    assert count_cached(fd, 0, cached_bytes) == cached_bytes
    assert 3 * SAMPLE_BYTES <= count_cached(fd, 0, SIZE_BYTES) <= cached_bytes


def test_a_read_at_the_end_of_a_file_is_short(fd: int) -> None:
    page_cache.load(fd, 0, SIZE_BYTES)
    assert pread_cached(fd, 100, SIZE_BYTES - 7) == CONTENT[-7:]
    assert pread_cached(fd, 100, SIZE_BYTES) == b""


def test_a_load_ends_with_the_file(fd: int) -> None:
    page_cache.load(fd, SIZE_BYTES - 1, 1 << 30)
    page_cache.load(fd, SIZE_BYTES + 1)


def test_a_missing_file_need_not_be_loaded(tmp_path: Path) -> None:
    page_cache.load_file(str(tmp_path / "missing"))


@pytest.mark.usefixtures("detection")
def test_a_failing_disk_is_not_a_missing_page(path: Path) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        with pytest.raises(OSError, match=r"Bad file descriptor|Permission denied"):
            pread_cached(fd, 1, 0)
    finally:
        os.close(fd)
