from contextlib import suppress
from pathlib import Path

from tests.log.log_test_directory import (
    NOW_MS,
    LogTestDirectory,
    append,
    fill,
    read_all,
    records_in,
)

from barnabas.log import LogConfig, OpenFiles


def open_descriptors(below: Path) -> int:
    """How many descriptors and maps of this process are on files below a path."""
    count = 0
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of this very listing
            count += fd.readlink().is_relative_to(below)
    return count


def test_hundreds_of_segments_are_read_within_a_small_bound(tmp_path: Path) -> None:
    log_dir = LogTestDirectory(tmp_path, OpenFiles(10))
    log = log_dir.create(LogConfig(segment_bytes=500, index_interval_bytes=50))
    fill(log, 700)
    assert len(log_dir.files_named("*.log")) >= 170
    assert len(read_all(log)) == 700
    for offset in range(0, 700, 11):
        assert records_in(log.read(offset, 1, upto=700))[0].offset == offset
        assert open_descriptors(tmp_path) <= 10 + 1  # and the lock
    log_dir.stop()


def test_many_partitions_share_the_bound(tmp_path: Path) -> None:
    log_dir = LogTestDirectory(tmp_path, OpenFiles(10))
    logs = [log_dir.create(partition=partition) for partition in range(50)]
    for number in range(10):
        for log in logs:
            assert append(log, b"%d" % number) == number
    assert all(len(read_all(log)) == 10 for log in logs)
    assert open_descriptors(tmp_path) <= 11
    log_dir.stop()


def test_a_slice_in_flight_keeps_its_file(tmp_path: Path) -> None:
    files = OpenFiles(4)
    log_dir = LogTestDirectory(tmp_path, files)
    log = log_dir.create(LogConfig(segment_bytes=500))
    fill(log, 100)
    pieces = [log.read(offset, 1, upto=100) for offset in range(100)]
    assert [records_in(piece)[0].offset for piece in pieces] == list(range(100))
    assert len(files) <= 4
    assert open_descriptors(tmp_path) > 20
    del pieces
    assert open_descriptors(tmp_path) <= 5
    log_dir.stop()


def test_a_file_in_use_stays_open(tmp_path: Path) -> None:
    log_dir = LogTestDirectory(tmp_path, OpenFiles(4))
    busy = log_dir.create(partition=99)
    append(busy, b"x")
    piece = busy.read(0, 100, upto=1)
    assert piece is not None
    for partition in range(20):
        log_dir.create(partition=partition)
        append(busy, b"x")
        again = busy.read(0, 100, upto=1)
        assert again is not None
        assert again.file is piece.file
    log_dir.stop()


def test_everything_is_closed_with_the_directory(tmp_path: Path) -> None:
    files = OpenFiles(50)
    log_dir = LogTestDirectory(tmp_path, files)
    for partition in range(5):
        log = log_dir.create(partition=partition)
        fill(log, 50)
        read_all(log, 200)
    log_dir.stop()
    assert len(files) == 0
    assert open_descriptors(tmp_path) == 0


def test_a_deleted_log_closes_its_files(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 100)
    read_all(log)
    log_dir.directory.delete_log(log)
    assert open_descriptors(log_dir.path) == 1  # the lock
    log_dir.delete_due(NOW_MS)
    log_dir.delete_due(NOW_MS + 60_000)
    assert not list(log_dir.path.glob("orders-0*"))
