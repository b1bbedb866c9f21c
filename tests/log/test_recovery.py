"""After any stop a log is a prefix of what it was, ending with a whole and valid batch."""

import os
from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.log_test_directory import (
    NOW_MS,
    SMALL,
    LogTestDirectory,
    append,
    batch,
    batch_at,
    fill,
    read_all,
    records_in,
)

from barnabas.log import CorruptLog, LogConfig
from barnabas.wire.errors import ErrorCode

ONE_SEGMENT = LogConfig(index_interval_bytes=200)
FIRST_LOG = "00000000000000000000.log"
NOT_CHECKSUMMED = {*range(8), *range(12, 16)}  # base offset and leader epoch of a batch

counts = st.lists(st.integers(1, 6), min_size=1, max_size=25)


def build(
    log_dir: LogTestDirectory, counts: list[int], config: LogConfig = ONE_SEGMENT
) -> list[int]:
    """A log with batches of so many records each; the sizes of the batches."""
    log = log_dir.create(config)
    sizes = []
    for count in counts:
        valid = batch([bytes(20 * count)] * count)
        sizes.append(len(valid.buffer))
        log.append_as_leader(valid, 0, NOW_MS)
    return sizes


@given(counts, st.data())
@settings(max_examples=60, deadline=None)
def test_a_partial_tail_is_truncated_after_the_last_whole_batch(
    new_log_dir: Callable[[], LogTestDirectory], counts: list[int], data: st.DataObject
) -> None:
    log_dir = new_log_dir()
    sizes = build(log_dir, counts)
    log_dir.kill()
    kept_bytes = data.draw(st.integers(0, sum(sizes)))
    os.truncate(log_dir.folder() / FIRST_LOG, kept_bytes)
    log_dir.restart()
    log = log_dir.open(ONE_SEGMENT)
    whole = sum(1 for end in accumulate(sizes) if end <= kept_bytes)
    assert log.log_end_offset == sum(counts[:whole])
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))
    assert (log_dir.folder() / FIRST_LOG).stat().st_size == sum(sizes[:whole])
    assert append(log, b"next") == log.log_end_offset - 1


@given(counts, st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_byte_ends_the_log_before_its_batch(
    new_log_dir: Callable[[], LogTestDirectory], counts: list[int], data: st.DataObject
) -> None:
    log_dir = new_log_dir()
    sizes = build(log_dir, counts)
    log_dir.kill()
    path = log_dir.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    number = data.draw(st.integers(0, len(counts) - 1))
    start = sum(sizes[:number])
    within = [at for at in range(sizes[number]) if at not in NOT_CHECKSUMMED]
    at = start + data.draw(st.sampled_from(within))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    log_dir.restart()
    log = log_dir.open(ONE_SEGMENT)
    assert log.log_end_offset == sum(counts[:number])
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))


@given(counts, st.one_of(st.binary(max_size=200), st.integers(1, 5000).map(bytes)))
@settings(max_examples=40, deadline=None)
def test_garbage_and_zeros_at_the_end_are_truncated(
    new_log_dir: Callable[[], LogTestDirectory], counts: list[int], tail: bytes
) -> None:
    log_dir = new_log_dir()
    build(log_dir, counts)
    log_dir.kill()
    with (log_dir.folder() / FIRST_LOG).open("ab") as file:
        file.write(tail)
    log_dir.restart()
    log = log_dir.open(ONE_SEGMENT)
    assert log.log_end_offset == sum(counts)
    assert len(read_all(log)) == sum(counts)


@given(st.integers(5, 80), st.data())
@settings(max_examples=30, deadline=None)
def test_segments_after_a_damaged_one_are_deleted(
    new_log_dir: Callable[[], LogTestDirectory], count: int, data: st.DataObject
) -> None:
    log_dir = new_log_dir()
    fill(log_dir.create(), count)
    log_dir.kill()
    logs = sorted(log_dir.folder().glob("*.log"))
    path = data.draw(st.sampled_from(logs))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    log_dir.restart()
    log = log_dir.open()
    assert log.log_end_offset < count
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))
    assert [str(path)] == [str(p) for p in sorted(log_dir.folder().glob("*.log"))][-1:]
    fill(log, 10)
    assert len(read_all(log)) == log.log_end_offset


def test_nothing_is_scanned_after_a_clean_shutdown(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log_dir.create(), 200)
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    monkeypatch.setattr("barnabas.log.producers.replay.replay_batch", None)
    log = log_dir.stop_and_reopen()
    assert log_dir.directory.was_clean_shutdown
    assert len(read_all(log)) == 200


def test_a_fully_flushed_log_is_not_scanned_after_a_crash(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    fill(log, 100)
    log.close()
    log_dir.directory.on_log_closed(log)
    log_dir.directory.checkpoint()
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    log = log_dir.kill_and_reopen()
    assert not log_dir.directory.was_clean_shutdown
    assert len(read_all(log)) == 100


def test_a_crash_of_an_unchanged_log_costs_no_scan(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log_dir.create(), 100)
    log_dir.stop_and_reopen()
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    assert len(read_all(log_dir.kill_and_reopen())) == 100


def test_only_segments_from_the_recovery_point_on_are_scanned(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_dir.create()
    fill(log, 100)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    fill(log, 5)
    last = sorted(log_dir.folder().glob("*.log"))[-1]
    log_dir.kill()
    log_dir.restart()
    reported = []
    monkeypatch.setattr("barnabas.log.segments.scan._PROGRESS_BYTES", 0)
    log = log_dir.directory.open_log(
        "orders", 0, bytes(range(16)), SMALL, lambda *step: reported.append(step)
    )
    assert len(read_all(log)) == 105
    name, scanned_bytes, total_bytes = reported[-1]
    assert (name, scanned_bytes) == ("orders-0", total_bytes)
    assert total_bytes <= 2 * SMALL.segment_bytes
    assert last.stat().st_size <= total_bytes


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", [None, b"", b"\0" * 4096, b"garbage!" * 30, b"odd"])
def test_lost_and_damaged_indexes_are_rebuilt(
    log_dir: LogTestDirectory, suffix: str, damage: bytes | None
) -> None:
    log = log_dir.create()
    for number in range(200):
        append(log, b"x" * 50, timestamp=NOW_MS + number)
    log_dir.stop()
    for path in log_dir.folder().glob(f"*.{suffix}"):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
    log_dir.restart()
    log = log_dir.open()
    assert len(read_all(log, 300)) == 200
    for offset in range(0, 200, 7):
        found = log.offset_for_timestamp(NOW_MS + offset)
        assert found is not None
        assert found.offset == offset
        assert records_in(log.read(offset, 200, upto=200))[0].offset == offset


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_lost_epochs_are_read_from_the_batches(log_dir: LogTestDirectory, stop: str) -> None:
    log = log_dir.create()
    for epoch in (0, 2, 5):
        log.append_as_leader(batch([b"x"] * 3), epoch, NOW_MS)
    getattr(log_dir, stop)()
    (log_dir.folder() / "leader-epoch-checkpoint").write_bytes(b"")
    log_dir.restart()
    log = log_dir.open()
    assert log.leader_epochs.entries == ((0, 0), (2, 3), (5, 6))


def test_damage_below_the_recovery_point_is_rejected_and_not_truncated(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    fill(log, 5)
    log_dir.kill()
    path = log_dir.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    content[500] ^= 0xFF
    path.write_bytes(content)
    log_dir.restart()
    with pytest.raises(CorruptLog) as refused:
        log_dir.open(ONE_SEGMENT)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert FIRST_LOG in refused.value.message
    assert path.read_bytes() == content


def test_an_unrecoverable_log_does_not_stop_the_recovery_of_others(
    log_dir: LogTestDirectory,
) -> None:
    for partition in range(3):
        log = log_dir.create(partition=partition)
        fill(log, 20)
        log.flusher.flush()
    log_dir.directory.checkpoint()
    for partition in range(3):
        fill(log_dir.open(partition=partition), 1)
    log_dir.kill()
    damaged = log_dir.folder(partition=1) / FIRST_LOG
    content = bytearray(damaged.read_bytes())
    content[500] ^= 0xFF
    damaged.write_bytes(content)
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: SMALL)
    assert log_dir.directory.unrecovered_partitions() == [("orders", 1)]
    assert len(read_all(log_dir.open(partition=2))) == 21
    with pytest.raises(CorruptLog):
        log_dir.open(partition=1)


def test_damage_in_a_closed_segment_is_never_served(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(LogConfig(segment_bytes=4096, index_interval_bytes=1 << 20))
    fill(log, 60)
    log_dir.stop()
    path = log_dir.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(content[8:12])
    content[second + 16] = 99  # the magic of the second batch
    path.write_bytes(content)
    log_dir.restart()
    log = log_dir.open()
    assert len(records_in(log.read(0, 100, upto=60))) == 1
    with pytest.raises(CorruptLog, match=f"damaged at byte {second}"):
        log.read(5, 100, upto=60)
    last = sorted(log_dir.folder().glob("*.log"))[-1]
    assert log.read(int(last.stem), 1000, upto=60) is not None


def test_a_log_that_was_truncated_and_written_again_is_recovered(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    log.truncate_to(10)
    fill(log, 3)
    log_dir.kill()
    path = log_dir.folder() / FIRST_LOG
    os.truncate(path, path.stat().st_size - 1)
    log_dir.restart()
    assert log_dir.open(ONE_SEGMENT).log_end_offset == 12


def test_a_log_created_again_ignores_the_checkpoint_of_the_deleted_one(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    log_dir.directory.checkpoint()
    log_dir.directory.delete_log(log)
    fill(log_dir.create(ONE_SEGMENT), 3)
    log_dir.kill()
    path = log_dir.folder() / FIRST_LOG
    os.truncate(path, path.stat().st_size - 1)
    log_dir.restart()
    assert log_dir.open(ONE_SEGMENT).log_end_offset == 2


def test_a_shutdown_is_clean_only_after_every_log_was_recovered(log_dir: LogTestDirectory) -> None:
    for partition in range(3):
        fill(log_dir.create(partition=partition), 10)
    log_dir.kill()
    log_dir.restart()
    log_dir.open(partition=1)
    log_dir.stop()
    log_dir.restart()
    assert not log_dir.directory.was_clean_shutdown
    log_dir.directory.recover_all(lambda topic: SMALL)
    assert log_dir.directory.unrecovered_partitions() == []
    log_dir.stop()
    log_dir.restart()
    assert log_dir.directory.was_clean_shutdown
    assert len(read_all(log_dir.open(partition=2))) == 10


def test_a_recovered_log_opens_without_another_scan(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log_dir.create(), 50)
    log_dir.kill()
    log_dir.restart()
    log_dir.directory.recover_all(lambda topic: SMALL)
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    assert len(read_all(log_dir.open())) == 50


def test_batches_out_of_order_end_the_log(log_dir: LogTestDirectory) -> None:
    log_dir.create(ONE_SEGMENT)
    log_dir.kill()
    content = batch_at(0) + batch_at(1) + batch_at(0) + batch_at(2)
    (log_dir.folder() / FIRST_LOG).write_bytes(content)
    log_dir.restart()
    assert log_dir.open(ONE_SEGMENT).log_end_offset == 2


def test_a_log_start_offset_beyond_the_end_empties_the_log(log_dir: LogTestDirectory) -> None:
    log = log_dir.create()
    fill(log, 10)
    log.advance_log_start_offset(8)
    log_dir.directory.checkpoint()
    log_dir.kill()
    os.truncate(log_dir.folder() / FIRST_LOG, 100)
    (log_dir.path / "recovery-point-offset-checkpoint").unlink()
    log_dir.restart()
    log = log_dir.open()
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)
    assert append(log, b"next") == 8


def test_batches_larger_than_the_buffer_are_recovered(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.log.segments.scan._BUFFER_BYTES", 1000)
    log = log_dir.create(ONE_SEGMENT)
    for size in (10, 5000, 300, 20_000, 10):
        append(log, b"x" * size)
    assert len(read_all(log_dir.kill_and_reopen(ONE_SEGMENT))) == 5


class TestLeftovers:
    def test_deleted_and_unfinished_files_are_removed(self, log_dir: LogTestDirectory) -> None:
        fill(log_dir.create(), 3)
        log_dir.stop()
        for name in (
            "00000000000000000007.log.deleted",
            "00000000000000000007.snapshot.deleted",
            "00000000000000000000.log.cleaned",
            "00000000000000000000.index.cleaned",
        ):
            (log_dir.folder() / name).touch()
        log_dir.restart()
        log = log_dir.open()
        assert log_dir.files_named("*.deleted") == log_dir.files_named("*.cleaned") == []
        assert len(read_all(log)) == 3

    def test_a_finished_swap_replaces_its_originals(self, log_dir: LogTestDirectory) -> None:
        fill(log_dir.create(LogConfig(segment_bytes=400)), 9)
        log_dir.stop()
        compacted = batch_at(1, [b"kept"]) + batch_at(4, [b"kept too"])
        (log_dir.folder() / f"{FIRST_LOG}.swap").write_bytes(compacted)
        log_dir.restart()
        log = log_dir.open()
        found = read_all(log)
        assert found[:2] == [(1, b"kept"), (4, b"kept too")]
        assert found[-1][0] == 8
        assert log_dir.files_named("*.swap") == []

    def test_a_swap_beside_unfinished_files_is_removed(self, log_dir: LogTestDirectory) -> None:
        fill(log_dir.create(), 3)
        log_dir.stop()
        (log_dir.folder() / f"{FIRST_LOG}.swap").write_bytes(batch_at(1))
        (log_dir.folder() / f"{FIRST_LOG}.cleaned").touch()
        log_dir.restart()
        assert len(read_all(log_dir.open())) == 3
        assert log_dir.files_named("*.swap") == []

    def test_unknown_files_are_ignored_with_a_warning(
        self, log_dir: LogTestDirectory, caplog: pytest.LogCaptureFixture
    ) -> None:
        fill(log_dir.create(), 3)
        log_dir.stop()
        (log_dir.folder() / "notes.txt").write_text("mine")
        (log_dir.folder() / "00000000000000000009.index").touch()
        log_dir.restart()
        log_dir.open()
        assert (log_dir.folder() / "notes.txt").read_text() == "mine"
        assert "notes.txt" in caplog.text
        assert not (log_dir.folder() / "00000000000000000009.index").exists()


@pytest.mark.parametrize("stop", [LogTestDirectory.stop, LogTestDirectory.kill])
@pytest.mark.parametrize("kept", [0, 3])
def test_a_log_cut_between_two_batches_below_its_recovery_point_is_rejected(
    log_dir: LogTestDirectory, stop: Callable[[LogTestDirectory], None], kept: int
) -> None:
    sizes = build(log_dir, [1] * 5)
    log_dir.directory.logs["orders", 0].flusher.flush()
    log_dir.directory.checkpoint()
    stop(log_dir)
    os.truncate(log_dir.folder() / FIRST_LOG, sum(sizes[:kept]))
    log_dir.restart()
    with pytest.raises(CorruptLog, match=f"ends at offset {kept}, .* offset 5 was on disk"):
        log_dir.open(ONE_SEGMENT)
    assert (log_dir.folder() / FIRST_LOG).stat().st_size == sum(sizes[:kept])


def test_a_log_whose_only_segment_is_missing_is_rejected(log_dir: LogTestDirectory) -> None:
    build(log_dir, [1] * 5)
    log_dir.stop()
    (log_dir.folder() / FIRST_LOG).unlink()
    log_dir.restart()
    with pytest.raises(CorruptLog, match="ends at offset 0"):
        log_dir.open(ONE_SEGMENT)
