"""The file cleaner-offset-checkpoint: Kafka's format, and when an offset in it is not valid."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.log.cleaner.cleaner_harness import COMPACTED, CleanerHarness

from barnabas.log.directory.cleaner_offsets import CLEANER_OFFSETS, CleanerOffsets
from barnabas.log.directory.offset_checkpoints import Checkpoint

A, B = b"a", b"b"


@pytest.fixture
def file(harness: CleanerHarness) -> Path:
    return harness.log_dir.path / CLEANER_OFFSETS


def clean_four_records(harness: CleanerHarness) -> None:
    harness.write_each((A, b"1"), (A, b"2"), (B, b"1"), (B, b"2"))
    harness.roll_and_clean()


def test_the_file_has_the_first_dirty_offset_in_kafkas_format(
    harness: CleanerHarness, file: Path
) -> None:
    clean_four_records(harness)
    assert file.read_text() == "0\n1\nprices 0 4\n"


def test_a_file_of_kafka_is_read(tmp_path: Path) -> None:
    (tmp_path / CLEANER_OFFSETS).write_text("0\n2\norders 3 17\n__consumer_offsets 49 8123\n")
    offsets = CleanerOffsets(str(tmp_path))
    assert offsets.get(("orders", 3)) == 17
    assert offsets.get(("__consumer_offsets", 49)) == 8123
    assert ("orders", 0) not in offsets


@pytest.mark.parametrize(
    "content", ["", "0\n", "1\n0\n", "0\n2\norders 3 17\n", "0\n1\nx\n", "\xff"]
)
def test_a_damaged_file_means_that_everything_is_dirty(tmp_path: Path, content: str) -> None:
    (tmp_path / CLEANER_OFFSETS).write_text(content, encoding="latin-1")
    assert CleanerOffsets(str(tmp_path)).get(("orders", 3)) is None


def test_the_first_dirty_offset_is_honoured_after_a_restart(harness: CleanerHarness) -> None:
    clean_four_records(harness)
    harness.write((A, b"3"))
    harness.stop()
    harness.start()
    harness.roll()
    assert harness.cleaner.cleanable_range(harness.log, 5).first_dirty_offset == 4
    harness.clean()
    assert harness.values() == [(3, B, b"2"), (4, A, b"3")]


def test_an_offset_beyond_the_end_of_the_log_is_reset_with_one_warning(
    harness: CleanerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    clean_four_records(harness)
    harness.log.directory.cleaner_offsets.put(("prices", 0), 100)
    harness.write((B, b"3"))
    harness.roll()
    for _ in range(3):
        assert harness.cleaner.cleanable_range(harness.log, 5).first_dirty_offset == 0
    assert caplog.text.count("resetting first dirty offset to log start offset 0") == 1
    assert harness.first_dirty_offset() == 0
    harness.clean()
    assert harness.values() == [(1, A, b"2"), (4, B, b"3")]


@pytest.mark.parametrize(("delete", "warnings"), [(False, 1), (True, 0)])
def test_an_offset_below_the_start_of_the_log_is_reset(
    harness: CleanerHarness,
    caplog: pytest.LogCaptureFixture,
    delete: bool,
    warnings: int,
) -> None:
    """With `delete` in the policy, retention moves the start of the log: that is no surprise."""
    harness.log.config = replace(COMPACTED, delete=delete)
    clean_four_records(harness)
    harness.write_each((A, b"3"), (A, b"4"))
    harness.log.advance_log_start_offset(5)
    for _ in range(3):
        assert harness.cleaner.cleanable_range(harness.log, 6).first_dirty_offset == 5
    assert harness.first_dirty_offset() == 5
    reset = [line for line in caplog.messages if "resetting first dirty offset" in line]
    assert len(reset) == warnings


def test_the_offsets_of_many_logs_are_written_together(
    harness: CleanerHarness, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [harness.create(f"topic{number}") for number in range(20)]
    for log in logs:
        harness.write_each((A, b"1"), (A, b"2"), log=log)
        harness.roll(log)
    written = []
    write = Checkpoint.write

    def count(checkpoint: Checkpoint) -> None:
        written.append(checkpoint)
        write(checkpoint)

    monkeypatch.setattr(Checkpoint, "write", count)
    harness.clean()
    assert len(file.read_text().splitlines()) == 2 + len(logs)
    assert len(written) <= 2


def test_a_clean_shutdown_writes_the_offsets(harness: CleanerHarness, file: Path) -> None:
    clean_four_records(harness)
    harness.log.directory.cleaner_offsets.put(("prices", 0), 2)
    harness.stop()
    assert file.read_text() == "0\n1\nprices 0 2\n"


def test_a_truncation_lowers_the_offset_at_once(harness: CleanerHarness, file: Path) -> None:
    clean_four_records(harness)
    harness.log.truncate_to(2)
    assert file.read_text() == "0\n1\nprices 0 2\n"
    harness.log.truncate_fully_and_start_at(1)
    assert file.read_text() == "0\n1\nprices 0 0\n"


def test_a_truncation_of_dirty_records_leaves_the_offset(
    harness: CleanerHarness, file: Path
) -> None:
    clean_four_records(harness)
    harness.write((A, b"3"))
    harness.log.truncate_to(4)
    assert file.read_text() == "0\n1\nprices 0 4\n"


@pytest.mark.parametrize("recreate", ["at once", "after a restart", "after a checkpoint"])
def test_a_new_log_with_the_name_of_a_deleted_one_is_dirty(
    harness: CleanerHarness, file: Path, recreate: str
) -> None:
    """Also if the process crashes before anything else is written."""
    clean_four_records(harness)
    harness.log.directory.delete_log(harness.log)
    harness.compacted.clear()
    if recreate == "after a restart":
        harness.log_dir.kill()
        harness.log_dir.restart()
    if recreate == "after a checkpoint":
        harness.log_dir.directory.cleaner_offsets.begin_checkpoint()  # written after the crash
    harness.log = harness.create("prices")
    harness.write_each((A, b"1"), (A, b"2"), (B, b"1"), (B, b"2"), (B, b"3"))
    harness.kill()
    harness.start()
    assert harness.first_dirty_offset() is None
    assert file.read_text() == "0\n0\n"


def test_logs_without_a_folder_fall_out(harness: CleanerHarness, file: Path) -> None:
    other = harness.create("rates")
    harness.write_each((A, b"1"), (A, b"2"), log=other)
    harness.roll(other)
    clean_four_records(harness)
    assert sorted(file.read_text().splitlines()[2:]) == ["prices 0 4", "rates 0 2"]
    harness.log.directory.delete_log(other)
    harness.compacted.remove(other)
    harness.write((A, b"3"))
    harness.roll_and_clean()
    assert file.read_text() == "0\n1\nprices 0 5\n"


def test_an_aborted_cleaning_leaves_the_offset(harness: CleanerHarness, file: Path) -> None:
    clean_four_records(harness)
    harness.write_each((A, b"3"), (A, b"4"))
    harness.roll()
    harness.background.hold()
    harness.clean()
    harness.compacted.clear()
    harness.background.release()
    assert file.read_text() == "0\n1\nprices 0 4\n"


def test_a_checkpoint_that_cannot_be_written_is_reported(
    harness: CleanerHarness,
) -> None:
    clean_four_records(harness)
    (harness.log_dir.path / f"{CLEANER_OFFSETS}.tmp").mkdir()
    harness.write_each((A, b"3"), (B, b"3"))
    harness.roll_and_clean()
    assert len(harness.failures) == 1
    assert harness.values() == [(4, A, b"3"), (5, B, b"3")]


def test_segments_are_not_replaced_before_the_file_has_the_log(harness: CleanerHarness) -> None:
    (harness.log_dir.path / f"{CLEANER_OFFSETS}.tmp").mkdir()
    for _ in range(2):
        clean_four_records(harness)
    assert len(harness.failures) == 2
    assert len(harness.values()) == 8
    (harness.log_dir.path / f"{CLEANER_OFFSETS}.tmp").rmdir()
    harness.clean()
    assert harness.values() == [(5, A, b"2"), (7, B, b"2")]
