"""After any stop a log is a prefix of what it was, ending with a whole and valid batch."""

import os
from collections.abc import Callable
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.log.workshop import (
    NOW_MS,
    SMALL,
    Workshop,
    append,
    batch,
    fill,
    placed,
    read_all,
    records_in,
)

from barnabas.log import CorruptLog, LogConfig
from barnabas.wire.errors import ErrorCode

ONE_SEGMENT = LogConfig(index_interval_bytes=200)
FIRST_LOG = "00000000000000000000.log"
NOT_CHECKSUMMED = {*range(8), *range(12, 16)}  # base offset and leader epoch of a batch

counts = st.lists(st.integers(1, 6), min_size=1, max_size=25)


def build(workshop: Workshop, counts: list[int], config: LogConfig = ONE_SEGMENT) -> list[int]:
    """A log with batches of so many records each; the sizes of the batches."""
    log = workshop.create(config)
    sizes = []
    for count in counts:
        valid = batch([bytes(20 * count)] * count)
        sizes.append(len(valid.buffer))
        log.append_as_leader(valid, 0, NOW_MS)
    return sizes


@given(counts, st.data())
@settings(max_examples=60, deadline=None)
def test_a_partial_tail_is_truncated_after_the_last_whole_batch(
    new_workshop: Callable[[], Workshop], counts: list[int], data: st.DataObject
) -> None:
    workshop = new_workshop()
    sizes = build(workshop, counts)
    workshop.kill()
    kept_bytes = data.draw(st.integers(0, sum(sizes)))
    os.truncate(workshop.folder() / FIRST_LOG, kept_bytes)
    workshop.restart()
    log = workshop.open(ONE_SEGMENT)
    whole = sum(1 for end in accumulate(sizes) if end <= kept_bytes)
    assert log.log_end_offset == sum(counts[:whole])
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))
    assert (workshop.folder() / FIRST_LOG).stat().st_size == sum(sizes[:whole])
    assert append(log, b"next") == log.log_end_offset - 1


@given(counts, st.data())
@settings(max_examples=60, deadline=None)
def test_a_damaged_byte_ends_the_log_before_its_batch(
    new_workshop: Callable[[], Workshop], counts: list[int], data: st.DataObject
) -> None:
    workshop = new_workshop()
    sizes = build(workshop, counts)
    workshop.kill()
    path = workshop.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    number = data.draw(st.integers(0, len(counts) - 1))
    start = sum(sizes[:number])
    within = [at for at in range(sizes[number]) if at not in NOT_CHECKSUMMED]
    at = start + data.draw(st.sampled_from(within))
    content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    workshop.restart()
    log = workshop.open(ONE_SEGMENT)
    assert log.log_end_offset == sum(counts[:number])
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))


@given(counts, st.one_of(st.binary(max_size=200), st.integers(1, 5000).map(bytes)))
@settings(max_examples=40, deadline=None)
def test_garbage_and_zeros_at_the_end_are_truncated(
    new_workshop: Callable[[], Workshop], counts: list[int], tail: bytes
) -> None:
    workshop = new_workshop()
    build(workshop, counts)
    workshop.kill()
    with (workshop.folder() / FIRST_LOG).open("ab") as file:
        file.write(tail)
    workshop.restart()
    log = workshop.open(ONE_SEGMENT)
    assert log.log_end_offset == sum(counts)
    assert len(read_all(log)) == sum(counts)


@given(st.integers(5, 80), st.data())
@settings(max_examples=30, deadline=None)
def test_segments_after_a_damaged_one_are_deleted(
    new_workshop: Callable[[], Workshop], count: int, data: st.DataObject
) -> None:
    workshop = new_workshop()
    fill(workshop.create(), count)
    workshop.kill()
    logs = sorted(workshop.folder().glob("*.log"))
    path = data.draw(st.sampled_from(logs))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    workshop.restart()
    log = workshop.open()
    assert log.log_end_offset < count
    assert [offset for offset, _ in read_all(log)] == list(range(log.log_end_offset))
    assert [str(path)] == [str(p) for p in sorted(workshop.folder().glob("*.log"))][-1:]
    fill(log, 10)
    assert len(read_all(log)) == log.log_end_offset


def test_nothing_is_scanned_after_a_clean_shutdown(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workshop.create(), 200)
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    monkeypatch.setattr("barnabas.log.producers.replay.replay_batch", None)
    log = workshop.stop_and_reopen()
    assert workshop.directory.was_clean_shutdown
    assert len(read_all(log)) == 200


def test_a_fully_flushed_log_is_not_scanned_after_a_crash(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = workshop.create()
    fill(log, 100)
    log.close()
    workshop.directory.on_log_closed(log)
    workshop.directory.checkpoint()
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    log = workshop.kill_and_reopen()
    assert not workshop.directory.was_clean_shutdown
    assert len(read_all(log)) == 100


def test_a_crash_of_an_unchanged_log_costs_no_scan(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workshop.create(), 100)
    workshop.stop_and_reopen()
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    assert len(read_all(workshop.kill_and_reopen())) == 100


def test_only_segments_from_the_recovery_point_on_are_scanned(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = workshop.create()
    fill(log, 100)
    log.flusher.flush()
    workshop.directory.checkpoint()
    fill(log, 5)
    last = sorted(workshop.folder().glob("*.log"))[-1]
    workshop.kill()
    workshop.restart()
    told = []
    monkeypatch.setattr("barnabas.log.segments.scan._PROGRESS_BYTES", 0)
    log = workshop.directory.open_log(
        "orders", 0, bytes(range(16)), SMALL, lambda *step: told.append(step)
    )
    assert len(read_all(log)) == 105
    name, scanned_bytes, total_bytes = told[-1]
    assert (name, scanned_bytes) == ("orders-0", total_bytes)
    assert total_bytes <= 2 * SMALL.segment_bytes
    assert last.stat().st_size <= total_bytes


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("damage", [None, b"", b"\0" * 4096, b"garbage!" * 30, b"odd"])
def test_lost_and_damaged_indexes_are_rebuilt(
    workshop: Workshop, suffix: str, damage: bytes | None
) -> None:
    log = workshop.create()
    for number in range(200):
        append(log, b"x" * 50, timestamp=NOW_MS + number)
    workshop.stop()
    for path in workshop.folder().glob(f"*.{suffix}"):
        path.unlink()
        if damage is not None:
            path.write_bytes(damage)
    workshop.restart()
    log = workshop.open()
    assert len(read_all(log, 300)) == 200
    for offset in range(0, 200, 7):
        found = log.offset_for_timestamp(NOW_MS + offset)
        assert found is not None
        assert found.offset == offset
        assert records_in(log.read(offset, 200, upto=200))[0].offset == offset


@pytest.mark.parametrize("stop", ["stop", "kill"])
def test_lost_epochs_are_read_from_the_batches(workshop: Workshop, stop: str) -> None:
    log = workshop.create()
    for epoch in (0, 2, 5):
        log.append_as_leader(batch([b"x"] * 3), epoch, NOW_MS)
    getattr(workshop, stop)()
    (workshop.folder() / "leader-epoch-checkpoint").write_bytes(b"")
    workshop.restart()
    log = workshop.open()
    assert log.leader_epochs.entries == ((0, 0), (2, 3), (5, 6))


def test_damage_below_the_recovery_point_is_rejected_and_not_truncated(workshop: Workshop) -> None:
    log = workshop.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    workshop.directory.checkpoint()
    fill(log, 5)
    workshop.kill()
    path = workshop.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    content[500] ^= 0xFF
    path.write_bytes(content)
    workshop.restart()
    with pytest.raises(CorruptLog) as refused:
        workshop.open(ONE_SEGMENT)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert FIRST_LOG in refused.value.message
    assert path.read_bytes() == content


def test_an_unrecoverable_log_does_not_stop_the_recovery_of_others(workshop: Workshop) -> None:
    for partition in range(3):
        log = workshop.create(partition=partition)
        fill(log, 20)
        log.flusher.flush()
    workshop.directory.checkpoint()
    for partition in range(3):
        fill(workshop.open(partition=partition), 1)
    workshop.kill()
    damaged = workshop.folder(partition=1) / FIRST_LOG
    content = bytearray(damaged.read_bytes())
    content[500] ^= 0xFF
    damaged.write_bytes(content)
    workshop.restart()
    workshop.directory.recover_all(lambda topic: SMALL)
    assert workshop.directory.unrecovered_partitions() == [("orders", 1)]
    assert len(read_all(workshop.open(partition=2))) == 21
    with pytest.raises(CorruptLog):
        workshop.open(partition=1)


def test_damage_in_a_closed_segment_is_never_served(workshop: Workshop) -> None:
    log = workshop.create(LogConfig(segment_bytes=4096, index_interval_bytes=1 << 20))
    fill(log, 60)
    workshop.stop()
    path = workshop.folder() / FIRST_LOG
    content = bytearray(path.read_bytes())
    second = 12 + int.from_bytes(content[8:12])
    content[second + 16] = 99  # the magic of the second batch
    path.write_bytes(content)
    workshop.restart()
    log = workshop.open()
    assert len(records_in(log.read(0, 100, upto=60))) == 1
    with pytest.raises(CorruptLog, match=f"damaged at byte {second}"):
        log.read(5, 100, upto=60)
    last = sorted(workshop.folder().glob("*.log"))[-1]
    assert log.read(int(last.stem), 1000, upto=60) is not None


def test_a_log_that_was_truncated_and_written_again_is_recovered(workshop: Workshop) -> None:
    log = workshop.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    workshop.directory.checkpoint()
    log.truncate_to(10)
    fill(log, 3)
    workshop.kill()
    path = workshop.folder() / FIRST_LOG
    os.truncate(path, path.stat().st_size - 1)
    workshop.restart()
    assert workshop.open(ONE_SEGMENT).log_end_offset == 12


def test_a_log_created_again_ignores_the_checkpoint_of_the_deleted_one(workshop: Workshop) -> None:
    log = workshop.create(ONE_SEGMENT)
    fill(log, 20)
    log.flusher.flush()
    workshop.directory.checkpoint()
    workshop.directory.delete_log(log)
    fill(workshop.create(ONE_SEGMENT), 3)
    workshop.kill()
    path = workshop.folder() / FIRST_LOG
    os.truncate(path, path.stat().st_size - 1)
    workshop.restart()
    assert workshop.open(ONE_SEGMENT).log_end_offset == 2


def test_a_shutdown_is_clean_only_after_every_log_was_recovered(workshop: Workshop) -> None:
    for partition in range(3):
        fill(workshop.create(partition=partition), 10)
    workshop.kill()
    workshop.restart()
    workshop.open(partition=1)
    workshop.stop()
    workshop.restart()
    assert not workshop.directory.was_clean_shutdown
    workshop.directory.recover_all(lambda topic: SMALL)
    assert workshop.directory.unrecovered_partitions() == []
    workshop.stop()
    workshop.restart()
    assert workshop.directory.was_clean_shutdown
    assert len(read_all(workshop.open(partition=2))) == 10


def test_a_recovered_log_opens_without_another_scan(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(workshop.create(), 50)
    workshop.kill()
    workshop.restart()
    workshop.directory.recover_all(lambda topic: SMALL)
    monkeypatch.setattr("barnabas.log.recovery.ValidBatches", None)
    assert len(read_all(workshop.open())) == 50


def test_batches_out_of_order_end_the_log(workshop: Workshop) -> None:
    workshop.create(ONE_SEGMENT)
    workshop.kill()
    content = placed(0) + placed(1) + placed(0) + placed(2)
    (workshop.folder() / FIRST_LOG).write_bytes(content)
    workshop.restart()
    assert workshop.open(ONE_SEGMENT).log_end_offset == 2


def test_a_log_start_offset_beyond_the_end_empties_the_log(workshop: Workshop) -> None:
    log = workshop.create()
    fill(log, 10)
    log.advance_log_start_offset(8)
    workshop.directory.checkpoint()
    workshop.kill()
    os.truncate(workshop.folder() / FIRST_LOG, 100)
    (workshop.path / "recovery-point-offset-checkpoint").unlink()
    workshop.restart()
    log = workshop.open()
    assert (log.log_start_offset, log.log_end_offset) == (8, 8)
    assert append(log, b"next") == 8


def test_batches_larger_than_the_buffer_are_recovered(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.log.segments.scan._BUFFER_BYTES", 1000)
    log = workshop.create(ONE_SEGMENT)
    for size in (10, 5000, 300, 20_000, 10):
        append(log, b"x" * size)
    assert len(read_all(workshop.kill_and_reopen(ONE_SEGMENT))) == 5


class TestLeftovers:
    def test_deleted_and_unfinished_files_are_removed(self, workshop: Workshop) -> None:
        fill(workshop.create(), 3)
        workshop.stop()
        for name in (
            "00000000000000000007.log.deleted",
            "00000000000000000007.snapshot.deleted",
            "00000000000000000000.log.cleaned",
            "00000000000000000000.index.cleaned",
        ):
            (workshop.folder() / name).touch()
        workshop.restart()
        log = workshop.open()
        assert workshop.files_named("*.deleted") == workshop.files_named("*.cleaned") == []
        assert len(read_all(log)) == 3

    def test_a_finished_swap_replaces_its_originals(self, workshop: Workshop) -> None:
        fill(workshop.create(LogConfig(segment_bytes=400)), 9)
        workshop.stop()
        compacted = placed(1, [b"kept"]) + placed(4, [b"kept too"])
        (workshop.folder() / f"{FIRST_LOG}.swap").write_bytes(compacted)
        workshop.restart()
        log = workshop.open()
        found = read_all(log)
        assert found[:2] == [(1, b"kept"), (4, b"kept too")]
        assert found[-1][0] == 8
        assert workshop.files_named("*.swap") == []

    def test_a_swap_beside_unfinished_files_is_removed(self, workshop: Workshop) -> None:
        fill(workshop.create(), 3)
        workshop.stop()
        (workshop.folder() / f"{FIRST_LOG}.swap").write_bytes(placed(1))
        (workshop.folder() / f"{FIRST_LOG}.cleaned").touch()
        workshop.restart()
        assert len(read_all(workshop.open())) == 3
        assert workshop.files_named("*.swap") == []

    def test_unknown_files_are_ignored_with_a_warning(
        self, workshop: Workshop, caplog: pytest.LogCaptureFixture
    ) -> None:
        fill(workshop.create(), 3)
        workshop.stop()
        (workshop.folder() / "notes.txt").write_text("mine")
        (workshop.folder() / "00000000000000000009.index").touch()
        workshop.restart()
        workshop.open()
        assert (workshop.folder() / "notes.txt").read_text() == "mine"
        assert "notes.txt" in caplog.text
        assert not (workshop.folder() / "00000000000000000009.index").exists()


@pytest.mark.parametrize("stop", [Workshop.stop, Workshop.kill])
@pytest.mark.parametrize("kept", [0, 3])
def test_a_log_cut_between_two_batches_below_its_recovery_point_is_rejected(
    workshop: Workshop, stop: Callable[[Workshop], None], kept: int
) -> None:
    sizes = build(workshop, [1] * 5)
    workshop.directory.logs["orders", 0].flusher.flush()
    workshop.directory.checkpoint()
    stop(workshop)
    os.truncate(workshop.folder() / FIRST_LOG, sum(sizes[:kept]))
    workshop.restart()
    with pytest.raises(CorruptLog, match=f"ends at offset {kept}, .* offset 5 was on disk"):
        workshop.open(ONE_SEGMENT)
    assert (workshop.folder() / FIRST_LOG).stat().st_size == sum(sizes[:kept])


def test_a_log_whose_only_segment_is_missing_is_rejected(workshop: Workshop) -> None:
    build(workshop, [1] * 5)
    workshop.stop()
    (workshop.folder() / FIRST_LOG).unlink()
    workshop.restart()
    with pytest.raises(CorruptLog, match="ends at offset 0"):
        workshop.open(ONE_SEGMENT)
