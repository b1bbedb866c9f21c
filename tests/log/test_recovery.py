"""After any stop a log is a prefix of what it was, ending with a whole and valid batch."""

import os
import shutil
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
    marker,
    read_all,
    records_in,
    write,
)

from barnabas.log import CorruptLog, Log, LogConfig
from barnabas.log.segments.index import IndexFile, TransactionIndex
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
    monkeypatch.setattr("barnabas.log.tail_recovery.ValidBatches", None)
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
    monkeypatch.setattr("barnabas.log.tail_recovery.ValidBatches", None)
    log = log_dir.kill_and_reopen()
    assert not log_dir.directory.was_clean_shutdown
    assert len(read_all(log)) == 100


def test_a_crash_of_an_unchanged_log_costs_no_scan(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(log_dir.create(), 100)
    log_dir.stop_and_reopen()
    monkeypatch.setattr("barnabas.log.tail_recovery.ValidBatches", None)
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
    fill(log_dir.create(), 60)
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
        log.read(1, 100, upto=60)
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
    monkeypatch.setattr("barnabas.log.tail_recovery.ValidBatches", None)
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


@st.composite
def histories(draw: st.DrawFn) -> list[str]:
    """What happens to a log before it crashes."""
    steps = st.sampled_from(
        ["records", "idempotent", "transaction", "abort", "commit", "new_epoch", "flush", "restart"]
    )
    return draw(st.lists(steps, min_size=1, max_size=60))


class LogHistory:
    """A log that lives through a history, until its broker crashes."""

    def __init__(self, log_dir: LogTestDirectory, config: LogConfig) -> None:
        self._log_dir = log_dir
        self._config = config
        self._log = log_dir.create(config)
        self._epoch = 0
        self._sequences = {1: 0, 2: 0}

    def live(self, steps: list[str]) -> None:
        for number, step in enumerate(steps):
            getattr(self, f"_{step}")(NOW_MS + number % 7)
        self._log_dir.kill()

    def _records(self, timestamp: int) -> None:
        valid = batch([bytes(90)] * 2, timestamp=timestamp)
        self._log.append_as_leader(valid, self._epoch, NOW_MS)

    def _idempotent(self, timestamp: int) -> None:
        self._numbered(1, timestamp, transactional=False)

    def _transaction(self, timestamp: int) -> None:
        self._numbered(2, timestamp, transactional=True)

    def _numbered(self, producer_id: int, timestamp: int, *, transactional: bool) -> None:
        valid = batch(
            [b"v"],
            timestamp=timestamp,
            producer_id=producer_id,
            epoch=0,
            sequence=self._sequences[producer_id],
            transactional=transactional,
        )
        self._sequences[producer_id] += 1
        self._log.append_as_leader(valid, self._epoch, NOW_MS, from_client=False)

    def _abort(self, _: int) -> None:
        self._end(committed=False)

    def _commit(self, _: int) -> None:
        self._end(committed=True)

    def _end(self, *, committed: bool) -> None:
        if self._log.producers.first_undecided_offset is not None:
            self._log.append_as_leader(marker(2, 0, committed=committed), self._epoch, NOW_MS)

    def _new_epoch(self, _: int) -> None:
        self._epoch += 1

    def _flush(self, _: int) -> None:
        self._log.flusher.flush()
        self._log_dir.directory.checkpoint()

    def _restart(self, _: int) -> None:
        self._log = self._log_dir.stop_and_reopen(self._config)


def described(log: Log) -> tuple[object, ...]:
    """Everything that recovery has to find out about a log."""
    producers = [
        (producer.producer_id, producer.next_sequence, producer.transaction_first_offset)
        for producer in log.producers.entries.values()
    ]
    batches = [  # without the timestamp: a snapshot has only one for each producer
        batch[:4] for producer in log.producers.entries.values() for batch in producer.batches
    ]
    return (
        read_all(log),
        [entry for entry in log.leader_epochs.entries if entry.start_offset < log.log_end_offset],
        producers,
        batches,
        log.producers.first_undecided_offset,
        log.aborted_transactions(0, log.log_end_offset),
        log.offset_of_max_timestamp(),
        [segment.max_timestamp_and_offset() for segment in log.segments.ordered],
        [log.offset_for_timestamp(NOW_MS + number) for number in range(8)],
    )


def assert_ascending(index: IndexFile) -> None:
    keys = [index.entry(number)[0] for number in range(index.count)]
    assert keys == sorted(set(keys))


@given(histories(), st.sampled_from([ONE_SEGMENT, LogConfig(1200, index_interval_bytes=50)]))
@settings(max_examples=60, deadline=None)
def test_recovery_from_the_recovery_point_finds_what_a_scan_of_everything_finds(
    new_log_dir: Callable[[], LogTestDirectory], steps: list[str], config: LogConfig
) -> None:
    log_dir = new_log_dir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("barnabas.log.segments.index._PENDING_ENTRIES", 2)
        LogHistory(log_dir, config).live(steps)
    copy = new_log_dir()
    copy.kill()
    shutil.rmtree(copy.path)
    shutil.copytree(log_dir.path, copy.path)
    for name in ("recovery-point-offset-checkpoint", "orders-0/leader-epoch-checkpoint"):
        (copy.path / name).unlink(missing_ok=True)
    for path in copy.folder().glob("*.snapshot"):
        path.unlink()
    copy.restart()
    log_dir.restart()
    log = log_dir.open(config)
    assert described(log) == described(copy.open(config))
    for segment in log.segments.ordered:
        assert_ascending(segment.offset_index)
        assert_ascending(segment.time_index)
    log_dir.kill()
    copy.kill()


def test_batches_below_the_recovery_point_are_not_scanned(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LogConfig(index_interval_bytes=256)
    log = log_dir.create(config)
    for number in range(500):
        append(log, b"x" * 100, timestamp=NOW_MS + number)
    log = log_dir.stop_and_reopen(config)
    flushed_bytes = log.size_bytes
    fill(log, 3)
    tail_bytes = log.size_bytes - flushed_bytes
    log_dir.kill()
    log_dir.restart()
    reported: list[tuple[str, int, int]] = []
    monkeypatch.setattr("barnabas.log.segments.scan._PROGRESS_BYTES", 0)
    log = log_dir.directory.open_log(
        "orders", 0, bytes(range(16)), config, lambda *step: reported.append(step)
    )
    assert reported == [("orders-0", tail_bytes, tail_bytes)]
    assert len(read_all(log, 1000)) == 503
    assert log.offset_for_timestamp(NOW_MS + 300) is not None


def test_index_entries_past_a_truncated_tail_are_removed(
    log_dir: LogTestDirectory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("barnabas.log.segments.index._PENDING_ENTRIES", 2)
    config = LogConfig(index_interval_bytes=0)
    log = log_dir.create(config)
    sizes = []
    for number in range(30):
        if number == 10:
            log.flusher.flush()
            log_dir.directory.checkpoint()
        append(log, b"x" * number, timestamp=NOW_MS + number)
        sizes.append(log.size_bytes)
    log_dir.kill()
    os.truncate(log_dir.folder() / FIRST_LOG, sizes[14] + 1)
    log_dir.restart()
    log = log_dir.open(config)
    assert log.log_end_offset == 15
    for number in range(15):
        append(log, b"y", timestamp=NOW_MS + number)
    active = log.segments.active
    assert_ascending(active.offset_index)
    assert_ascending(active.time_index)
    assert active.max_timestamp_and_offset() == (NOW_MS + 14, 14)
    assert [len(records_in(log.read(offset, 1, upto=30))) for offset in range(29, -1, -1)] == [
        1
    ] * 30
    assert "rebuilding" not in caplog.text


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
def test_an_index_with_a_lost_page_is_rebuilt(log_dir: LogTestDirectory, suffix: str) -> None:
    config = LogConfig(index_interval_bytes=0)
    log = log_dir.create(config)
    for number in range(3000):
        append(log, b"x", timestamp=NOW_MS + number)
    log = log_dir.stop_and_reopen(config)
    fill(log, 3)
    log_dir.kill()
    path = log_dir.folder() / f"{0:020}.{suffix}"
    content = bytearray(path.read_bytes())
    content[8192:12288] = bytes(4096)
    path.write_bytes(content)
    log_dir.restart()
    active = log_dir.open(config).segments.active
    index = active.offset_index if suffix == "index" else active.time_index
    assert_ascending(index)
    assert index.count > 2900


def test_a_flush_includes_the_aborted_transactions(log_dir: LogTestDirectory) -> None:
    log = log_dir.create(ONE_SEGMENT)
    index = log_dir.folder() / f"{0:020}.txnindex"
    write(log, batch([b"v"], producer_id=2, epoch=0, sequence=0, transactional=True))
    assert str(index) not in log.flusher.begin().other_paths
    log.append_as_leader(marker(2, 0, committed=False), 0, NOW_MS)
    assert str(index) in log.flusher.begin().other_paths
    assert str(index) not in log.flusher.begin().other_paths


@pytest.mark.parametrize("synced_aborts", [0, 1])
@pytest.mark.parametrize("is_in_log", [True, False])
@pytest.mark.parametrize("kept_bytes", [0, 10, 26, 34])
def test_entries_of_unsynced_abort_markers_are_not_trusted(
    log_dir: LogTestDirectory, kept_bytes: int, is_in_log: bool, synced_aborts: int
) -> None:
    """A power loss keeps some bytes of the entry and zeros after them, and the marker or not."""
    log = log_dir.create(ONE_SEGMENT)
    write(log, batch(producer_id=2, epoch=0, sequence=0, transactional=True))
    log.append_as_leader(marker(2, 0, committed=synced_aborts == 0), 0, NOW_MS)
    log = log_dir.stop_and_reopen(ONE_SEGMENT)
    synced_bytes, expected = log.size_bytes, log.aborted_transactions(0, 100)
    write(log, batch(producer_id=2, epoch=0, sequence=1, transactional=True))
    log.append_as_leader(marker(2, 0, committed=False), 0, NOW_MS)
    if is_in_log:
        expected = log.aborted_transactions(0, 100)
    log_dir.kill()
    path, entry_bytes = log_dir.folder() / f"{0:020}.txnindex", TransactionIndex.ENTRY.size
    kept = path.read_bytes()[: synced_aborts * entry_bytes + kept_bytes]
    path.write_bytes(kept + bytes(entry_bytes - kept_bytes))
    if not is_in_log:
        os.truncate(log_dir.folder() / FIRST_LOG, synced_bytes)
    log_dir.restart()
    assert log_dir.open(ONE_SEGMENT).aborted_transactions(0, 100) == expected


def test_damaged_snapshots_and_transaction_indexes_are_rebuilt_together(
    log_dir: LogTestDirectory,
) -> None:
    log = log_dir.create(ONE_SEGMENT)
    append(log, b"of the segment before")
    log.maintenance.roll()
    write(log, batch(producer_id=2, epoch=0, sequence=0, transactional=True))
    log.append_as_leader(marker(2, 0, committed=False), 0, NOW_MS)
    log = log_dir.stop_and_reopen(ONE_SEGMENT)
    expected = described(log)
    log_dir.kill()
    for pattern in ("*.snapshot", "*.txnindex"):
        for path in log_dir.folder().glob(pattern):
            path.write_bytes(path.read_bytes()[:-1])
    log_dir.restart()
    assert described(log_dir.open(ONE_SEGMENT)) == expected


@pytest.mark.parametrize("is_flushed", [True, False])
def test_a_gap_between_batches_of_a_leader_is_no_damage(
    log_dir: LogTestDirectory, is_flushed: bool
) -> None:
    """A compacted leader has the gap. The follower rolls there, and was never cleaned itself."""
    config = LogConfig(segment_bytes=100, index_interval_bytes=200)
    log = log_dir.create(config)
    batches = [batch_at(0, [b"a", b"b"]), batch_at(7, [b"c", b"d"]), batch_at(9, [b"e"])]
    for content in batches:
        log.append_as_follower(content, NOW_MS)
    assert len(log.segments) == 3
    if is_flushed:
        log.flusher.flush()
        log_dir.directory.checkpoint()
    expected = described(log)
    log_dir.kill()
    log_dir.restart()
    assert described(log_dir.open(config)) == expected
