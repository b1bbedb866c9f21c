"""Which logs are cleaned first, what a cleaning needs, and what ends one."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.log.cleaner.cleaner_harness import COMPACTED, DAY_MS, CleanerHarness
from tests.os_faults import fault_in_this_thread

from barnabas.log import Log
from barnabas.log.cleaner import log_cleaner
from barnabas.log.cleaner.cleanable import MAX_QUIET_MS, CleanableRange, find_cleanable_range
from barnabas.wire.records.compression import Codec

A, B, C = b"a", b"b", b"c"
HOUR_MS = 60 * 60 * 1000

Value = tuple[int, bytes | None, bytes | None]
"""An offset, a key and a value."""


def dirty_logs(harness: CleanerHarness, topics: int) -> list[Log]:
    """Logs whose share of dirty bytes is larger the later they are created."""
    logs = [harness.log, *(harness.create(f"topic{number}") for number in range(1, topics))]
    for log in logs:
        harness.write_each(*((b"%d" % number, b"1") for number in range(10)), log=log)
        harness.roll(log)
    harness.clean()
    for number, log in enumerate(logs):
        harness.write_each(*[(A, b"1")] * (number + 2), log=log)
        harness.roll(log)
    return logs


def record_order(harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the list to which each finished cleaning adds its topic."""
    order: list[str] = []
    checkpoint = harness.cleaner._checkpoint

    def note(log: Log, first_dirty_offset: int) -> None:
        order.append(log.topic)
        checkpoint(log, first_dirty_offset)

    monkeypatch.setattr(harness.cleaner, "_checkpoint", note)
    return order


def record_cleanings(
    harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[int, list[Value]]]:
    """Returns the list to which each cleaning adds the offset that it reached, and what is left."""
    cleanings: list[tuple[int, list[Value]]] = []

    def note(log: Log, first_dirty_offset: int) -> None:
        cleanings.append((first_dirty_offset, harness.values(log)))
        checkpoint(log, first_dirty_offset)

    checkpoint = harness.cleaner._checkpoint
    monkeypatch.setattr(harness.cleaner, "_checkpoint", note)
    return cleanings


class TestOrder:
    """The logs of a round, one after the other."""

    def test_the_dirtiest_log_is_cleaned_first(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dirty_logs(harness, 3)
        order = record_order(harness, monkeypatch)
        harness.clean()
        assert order == ["topic2", "topic1", "prices"]

    def test_a_log_that_must_be_cleaned_goes_first(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        logs = dirty_logs(harness, 3)
        logs[0].config = replace(COMPACTED, max_compaction_lag_ms=HOUR_MS)
        harness.now_ms += 2 * HOUR_MS
        order = record_order(harness, monkeypatch)
        harness.clean()
        assert order == ["prices", "topic2", "topic1"]
        assert harness.cleaner.stats.max_compaction_delay_ms == HOUR_MS

    def test_a_log_must_be_cleaned_whatever_its_dirty_ratio(self, harness: CleanerHarness) -> None:
        dirty_logs(harness, 1)
        harness.log.config = replace(
            COMPACTED, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR_MS
        )
        harness.clean()
        assert harness.first_dirty_offset() == 10
        harness.now_ms += 2 * HOUR_MS
        harness.clean()
        assert harness.first_dirty_offset() == 12

    def test_the_ratio_must_be_exceeded(self, harness: CleanerHarness) -> None:
        harness.log.config = replace(COMPACTED, min_cleanable_dirty_ratio=1.0)
        harness.write_each((A, b"1"), (A, b"2"))
        harness.roll_and_clean()
        assert harness.cleaner.stats.max_dirty_ratio == 1.0
        assert len(harness.values()) == 2

    def test_as_many_logs_are_cleaned_at_once_as_there_are_threads(
        self, harness: CleanerHarness
    ) -> None:
        logs = dirty_logs(harness, 5)
        harness.settings["log.cleaner.threads"] = 3
        harness.background.hold()
        harness.clean()
        assert [log.compaction_state().is_busy for log in logs] == [False] * 2 + [True] * 3
        harness.settings["log.cleaner.threads"] = 2  # changed at run time
        harness.background.run_next()
        harness.background.release()
        for log in logs:
            assert not log.compaction_state().is_busy
            assert len([value for value in harness.values(log) if value[1] == A]) == 1

    def test_no_log_is_cleaned_twice_at_once(self, harness: CleanerHarness) -> None:
        dirty_logs(harness, 1)
        harness.settings["log.cleaner.threads"] = 5
        harness.background.hold()
        harness.clean()
        harness.clean()
        harness.cleaner.clean_now(lambda: None)
        assert harness.background.held is not None
        assert len(harness.background.held) == 1
        harness.background.release()
        assert harness.first_dirty_offset() == 12

    def test_clean_now_reports_when_all_logs_are_clean(self, harness: CleanerHarness) -> None:
        harness.write_each((A, b"1"), (A, b"2"))
        done: list[bool] = []
        harness.background.hold()
        harness.cleaner.clean_now(lambda: done.append(True))
        assert not done
        harness.background.release()
        assert done == [True]
        assert harness.values() == [(1, A, b"2")]


class TestSettings:
    """Settings have an effect at once."""

    def test_a_disabled_cleaner_cleans_nothing(self, harness: CleanerHarness) -> None:
        dirty_logs(harness, 1)
        harness.settings["log.cleaner.enable"] = False
        harness.clean()
        assert harness.first_dirty_offset() == 10
        harness.settings["log.cleaner.enable"] = True
        harness.clean()
        assert harness.first_dirty_offset() == 12

    def test_the_backoff_is_the_time_between_rounds(self, harness: CleanerHarness) -> None:
        harness.settings["log.cleaner.backoff.ms"] = 10_000
        harness.clean()  # looks for delete horizons
        harness.clean()
        harness.write_each((A, b"1"), (A, b"2"))
        harness.roll()
        harness.now_ms += 9_999
        harness.clean()
        assert len(harness.values()) == 2
        harness.now_ms += 1
        harness.clean()
        assert len(harness.values()) == 1

    @pytest.mark.parametrize("load_factor", [1.0, 0.5, 0.1, 0.01])
    def test_any_load_factor_leaves_room_in_the_map(
        self, harness: CleanerHarness, load_factor: float
    ) -> None:
        harness.settings["log.cleaner.io.buffer.load.factor"] = load_factor
        harness.write_each((A, b"1"), (B, None), (A, b"2"))
        harness.roll_and_clean()
        harness.now_ms += DAY_MS
        harness.clean()  # nothing is dirty: the map is empty
        assert harness.values() == [(2, A, b"2")]
        assert not harness.log.compaction_state().uncleanable_reason

    @pytest.mark.parametrize("buffer_bytes", [0, 200, 1000, 1 << 20])
    def test_the_size_of_the_buffers_does_not_matter(
        self, harness: CleanerHarness, buffer_bytes: int
    ) -> None:
        harness.settings["log.cleaner.io.buffer.size"] = buffer_bytes
        harness.write_each(*((b"%d" % (number % 7), bytes(number * 30)) for number in range(40)))
        harness.roll_and_clean()
        assert [offset for offset, _, _ in harness.values()] == list(range(33, 40))


class TestFullMap:
    """A log with more keys than the map can hold is cleaned several times, one after the other."""

    @pytest.mark.parametrize("slots", [3, 4, 7, 100])
    @pytest.mark.parametrize("records_per_batch", [1, 3, 60])
    def test_one_round_cleans_everything(
        self,
        harness: CleanerHarness,
        monkeypatch: pytest.MonkeyPatch,
        slots: int,
        records_per_batch: int,
    ) -> None:
        harness.settings["log.cleaner.dedupe.buffer.size"] = 24 * slots
        pairs = [(b"%d" % (number % 20), b"%d" % number) for number in range(60)]
        for start in range(0, 60, records_per_batch):
            harness.write(*pairs[start : start + records_per_batch])
            if start % 9 == 0:
                harness.roll()
        harness.roll()
        cleanings = record_cleanings(harness, monkeypatch)
        harness.clean()
        reached = [first_dirty_offset for first_dirty_offset, _ in cleanings]
        assert sorted(set(reached)) == reached
        assert reached[-1] == 60
        for _, values in cleanings:
            assert dict(pairs) == {key: value for _, key, value in values}
        assert [offset for offset, _, _ in harness.values()] == list(range(40, 60))

    def test_what_the_map_does_not_reach_is_copied(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harness.settings["log.cleaner.dedupe.buffer.size"] = 24 * 3  # two keys
        harness.write_each((A, b"1"), (A, b"2"), (B, b"1"), (C, b"1"), (C, b"2"), (A, b"3"))
        harness.roll()
        cleanings = record_cleanings(harness, monkeypatch)
        harness.clean()
        kept = [(reached, [offset for offset, _, _ in values]) for reached, values in cleanings]
        assert kept == [(3, [1, 2, 3, 4, 5]), (6, [2, 4, 5])]

    def test_other_logs_of_the_round_are_cleaned_before_it_goes_on(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dirty_logs(harness, 2)
        harness.settings["log.cleaner.dedupe.buffer.size"] = 24 * 3  # two keys
        harness.write_each((B, b"1"), (C, b"1"), log=harness.compacted[1])
        harness.roll(harness.compacted[1])
        order = record_order(harness, monkeypatch)
        harness.clean()
        assert order == ["topic1", "prices", "topic1"]


class TestDeletes:
    """Tombstones without new records."""

    def test_without_delete_retention_a_tombstone_goes_in_the_next_round(
        self, harness: CleanerHarness
    ) -> None:
        harness.log.config = replace(COMPACTED, delete_retention_ms=0)
        harness.write_each((A, b"1"), (B, b"1"), (A, None), (B, b"2"))
        harness.roll_and_clean()
        assert harness.values() == [(2, A, None), (3, B, b"2")]
        harness.now_ms += 1
        harness.clean()
        assert harness.values() == [(3, B, b"2")]

    def test_a_log_without_horizons_is_left_alone(self, harness: CleanerHarness) -> None:
        harness.write_each((A, b"1"), (A, b"2"))
        harness.roll_and_clean()
        path = Path(harness.log.segments.ordered[0].path())
        file = path.stat().st_ino
        for _ in range(3):
            harness.now_ms += DAY_MS
            harness.clean()
        assert path.stat().st_ino == file

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
    def test_a_restart_cleans_only_logs_with_tombstones_that_are_due(
        self, harness: CleanerHarness, codec: Codec
    ) -> None:
        """The horizon of a batch stays when its tombstones are gone."""
        harness.write((A, b"1"), (B, b"1"), (A, None), codec=codec)
        harness.roll_and_clean()
        for left in ([(1, B, b"1")], [(1, B, b"1")]):
            harness.now_ms += 2 * DAY_MS
            harness.stop()
            harness.start()
            path = Path(harness.log.segments.ordered[0].path())
            file, had = path.stat().st_ino, harness.values()
            harness.clean()  # looks for tombstones
            harness.clean()
            assert harness.values() == left
            assert (path.stat().st_ino == file) == (had == left)

    def test_a_key_that_is_written_again_after_its_tombstone_is_there(
        self, harness: CleanerHarness
    ) -> None:
        harness.write_each((A, b"1"), (A, None), (B, b"1"))
        harness.roll_and_clean()
        harness.write((A, b"2"))
        harness.now_ms += 2 * DAY_MS
        harness.roll_and_clean()
        assert harness.values() == [(2, B, b"1"), (3, A, b"2")]

    def test_records_of_an_open_transaction_do_not_replace_a_tombstone(
        self, harness: CleanerHarness
    ) -> None:
        harness.write_each((A, b"1"), (A, None))
        harness.roll()
        harness.write_in_transaction((A, b"undecided"))
        harness.roll_and_clean()
        assert harness.values() == [(1, A, None), (2, A, b"undecided")]


def full_disk(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def fail_call(number: int, name: str) -> Callable[..., Any]:
    """Returns an `os` function that fails when it is called for the nth time."""
    real, calls = getattr(os, name), [0]

    def call(*args: Any, **named: Any) -> Any:
        calls[0] += 1
        return full_disk() if calls[0] == number else real(*args, **named)

    return call


class TestFullDisk:
    """A cleaning needs space; without it the log stays as it was."""

    @pytest.mark.parametrize(
        ("name", "number"),
        [
            *(("open", number) for number in range(1, 12)),
            *(("pwrite", number) for number in range(1, 3)),
            *(("fsync", number) for number in range(1, 4)),
            ("utime", 1),
        ],
    )
    def test_the_log_stays_as_it_was_and_is_cleaned_later(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch, name: str, number: int
    ) -> None:
        self.write(harness)
        before = harness.values()
        files = set(Path(harness.log.path).iterdir())
        calls = fail_call(number, name)
        monkeypatch.setattr(os, name, fault_in_this_thread(name, calls))
        harness.clean()
        monkeypatch.undo()
        assert [failure.errno for failure in harness.failures] == [errno.ENOSPC]
        assert harness.values() == before
        assert set(Path(harness.log.path).iterdir()) == files
        assert not harness.log.compaction_state().is_busy
        assert not harness.log.compaction_state().uncleanable_reason
        harness.clean()
        assert len(harness.values()) == 3
        assert harness.first_dirty_offset() == 6

    def test_it_is_logged_once_until_a_cleaning_succeeds(
        self,
        harness: CleanerHarness,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        for lines in (1, 2):
            self.write(harness)
            for _ in range(3):
                with monkeypatch.context() as full:
                    full.setattr(os, "fsync", fault_in_this_thread("fsync", full_disk))
                    harness.clean()
            warnings = [line for line in caplog.messages if "because the disk is full" in line]
            assert len(warnings) == lines
            assert f"segment.bytes ({COMPACTED.segment_bytes} bytes)" in warnings[0]
            harness.clean()
            assert len(harness.values()) == 3

    def test_a_second_group_that_fails_leaves_the_first_in_place(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harness.log.config = replace(COMPACTED, segment_bytes=300)
        for _ in range(2):
            self.write(harness)
        before = harness.values()
        monkeypatch.setattr(os, "fsync", fault_in_this_thread("fsync", fail_call(6, "fsync")))
        harness.clean()
        monkeypatch.undo()
        assert len(harness.failures) == 1
        assert len(before) > len(harness.values()) > 3
        assert harness.files(".cleaned") == []
        assert harness.first_dirty_offset() == 0
        harness.clean()
        assert len(harness.values()) == 3

    def write(self, harness: CleanerHarness) -> None:
        for value in (b"1", b"2"):
            harness.write_each((A, value), (B, value), (C, value))
            harness.roll()


def test_a_log_is_looked_at_again_only_when_it_has_changed(
    harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def find(log: Log, *arguments: Any, **fields: Any) -> CleanableRange:
        looks.append(log.topic)
        return find_cleanable_range(log, *arguments, **fields)

    def topics_looked_at() -> list[str]:
        looks.clear()
        harness.clean()
        return looks

    harness.config = replace(COMPACTED, segment_ms=1 << 60)
    harness.log.config = harness.config
    other = harness.create("others")
    harness.write((A, b"1"))
    harness.write((A, b"1"), log=other)
    harness.clean()  # scans for delete horizons
    monkeypatch.setattr(log_cleaner, "find_cleanable_range", find)
    assert topics_looked_at() == ["prices", "others"]
    assert topics_looked_at() == []
    harness.write((A, b"2"))
    assert topics_looked_at() == ["prices"]
    harness.log.config = replace(harness.config, min_compaction_lag_ms=1)
    assert topics_looked_at() == ["prices"]
    assert topics_looked_at() == []
    harness.now_ms += MAX_QUIET_MS
    assert topics_looked_at() == ["prices", "others"]
    harness.roll(other)
    assert topics_looked_at()[0] == "others"


def test_the_folder_is_synced_before_the_checkpoint(
    harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a power loss could bring old values back into the part that counts as clean."""
    order = record_order(harness, monkeypatch)
    real_fsync = os.fsync

    def note(fd: int) -> None:
        if os.path.samestat(os.fstat(fd), Path(harness.log.path).stat()):
            order.append(f"sync of {harness.files('.cleaned') + harness.files('.swap')}")
        real_fsync(fd)

    harness.write_each((A, b"1"), (A, b"2"))
    harness.roll()
    monkeypatch.setattr(os, "fsync", fault_in_this_thread("fsync", note))
    harness.clean()
    assert order == ["sync of []", "prices"]


class TestEnds:
    """What ends a cleaning before its end."""

    def test_a_closed_cleaner_begins_no_further_step(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("barnabas.log.cleaner.cleaning.STEP_BYTES", 1)
        dirty_logs(harness, 2)
        before = harness.values()
        harness.background.hold()
        harness.clean()
        harness.background.run_next()
        harness.cleaner.close()
        harness.background.run_next()
        assert harness.background.held == []
        harness.clean()
        assert harness.background.held == []
        assert harness.values() == before

    def test_a_restart_removes_what_a_closed_cleaner_has_left(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("barnabas.log.cleaner.cleaning.STEP_BYTES", 1)
        harness.settings["log.cleaner.io.buffer.size"] = 200
        harness.write_each(*[(A, b"1")] * 20)
        harness.roll()
        harness.background.hold()
        harness.clean()
        while not harness.files(".cleaned"):
            harness.background.run_next()
        harness.stop()
        assert harness.files(".cleaned")
        harness.start()
        assert harness.files(".cleaned") == []
        assert len(harness.values()) == 20

    def test_files_that_were_not_put_in_place_are_removed_before_the_next_cleaning(
        self, harness: CleanerHarness
    ) -> None:
        """Recovery would take the result of the next cleaning for unfinished."""
        harness.write_each((A, b"1"), (A, b"2"))
        harness.roll()
        for suffix in (".log", ".txnindex"):
            Path(harness.log.path, f"{0:020d}{suffix}.cleaned").write_bytes(b"left over")
        harness.clean()
        assert harness.files(".cleaned") == []
        assert harness.files(".txnindex") == []
        assert harness.values() == [(1, A, b"2")]

    @pytest.mark.parametrize("at_start", [True, False])
    def test_a_damaged_log_does_not_end_the_cleaning_of_others(
        self, harness: CleanerHarness, at_start: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        other = harness.create("rates")
        for log in (harness.log, other):
            harness.write_each((A, b"1"), (A, b"2"), log=log)
            harness.roll(log)
        harness.log.config = replace(COMPACTED, max_compaction_lag_ms=DAY_MS)
        harness.now_ms += 2 * DAY_MS
        path = Path(harness.log.segments.ordered[0].path())
        content = bytearray(path.read_bytes())
        content[16 if at_start else -1] ^= 1  # the magic of the first batch; the last checksum
        path.write_bytes(content)
        harness.cleaner.clean_now(lambda: None)
        assert harness.log.compaction_state().uncleanable_reason
        assert caplog.text.count("prices-0 is not compacted any more") == 1
        assert harness.values(other) == [(1, A, b"2")]
        harness.write((A, b"3"), log=other)
        harness.roll(other)
        harness.clean()
        assert harness.values(other) == [(2, A, b"3")]
        assert path.read_bytes() == content

    @pytest.mark.parametrize("step", range(5))
    def test_a_truncation_between_any_steps_ends_it(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch, step: int
    ) -> None:
        """What the truncated records would have replaced is there."""
        monkeypatch.setattr("barnabas.log.cleaner.cleaning.STEP_BYTES", 1)
        harness.log.config = replace(COMPACTED, segment_bytes=200)
        harness.write_each((A, b"1"), (B, b"1"), (C, b"1"), (A, b"2"), (B, b"2"), (C, b"2"))
        harness.roll()
        harness.background.hold()
        harness.clean()
        for _ in range(step):
            harness.background.run_next()
        assert len(harness.values()) == 6
        harness.log.truncate_to(3)
        harness.write((b"other", b"1"))
        harness.roll()
        harness.background.release()
        assert harness.values() == [
            (0, A, b"1"),
            (1, B, b"1"),
            (2, C, b"1"),
            (3, b"other", b"1"),
        ]
        assert harness.files(".cleaned") == []
        assert harness.first_dirty_offset() == 0
        assert not harness.failures
        assert not harness.log.compaction_state().uncleanable_reason
        harness.clean()
        assert harness.first_dirty_offset() == 4

    def test_a_disk_that_fails_while_segments_are_replaced_is_left_to_recovery(
        self, harness: CleanerHarness, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harness.write_each((A, b"1"), (A, b"2"))
        harness.roll()
        monkeypatch.setattr(os, "rename", fault_in_this_thread("rename", fail_call(2, "rename")))
        harness.clean()
        monkeypatch.undo()
        assert harness.log_dir.directory.failed is not None
        assert len(harness.failures) == 1
        assert (len(harness.files(".swap")), len(harness.files(".cleaned"))) == (1, 2)
        harness.kill()
        harness.start()
        assert (harness.files(".swap"), harness.files(".cleaned")) == ([], [])
        assert harness.values() == [(0, A, b"1"), (1, A, b"2")]
