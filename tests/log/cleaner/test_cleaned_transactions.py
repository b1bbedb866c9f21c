"""Transactions in a compacted log: aborted data goes first, markers when nothing else is left."""

from dataclasses import replace

import pytest
from tests.log.cleaner.cleaner_harness import COMPACTED, DAY_MS, CleanerHarness

from barnabas.log.cleaner.transactions import CleanedTransactions
from barnabas.log.segments.index import AbortedTransaction
from barnabas.wire.records.batch import BatchHeader, read_header
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.control import ControlType, build_marker, control_key

A, B, C = b"a", b"b", b"c"


def data(offset: int, producer_id: int = 7, *, transactional: bool = True) -> BatchHeader:
    batch = build_batch(
        [Record(0, 0, A, b"1", [])],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )
    return read_header(batch)


def marker(offset: int, producer_id: int = 7, *, committed: bool) -> tuple[BatchHeader, bytes]:
    batch = build_marker(
        producer_id=producer_id,
        producer_epoch=0,
        committed=committed,
        coordinator_epoch=0,
        timestamp=0,
    )
    return read_header(batch)._replace(base_offset=offset), bytes(batch)


class TestCleanedTransactions:
    """The verdict on one batch after the other."""

    def test_data_of_an_aborted_transaction_is_aborted_up_to_its_marker(self) -> None:
        aborted = AbortedTransaction(7, 10, 12, 13)
        transactions = CleanedTransactions([aborted])
        assert not transactions.on_data_batch(data(9))
        assert transactions.on_data_batch(data(10))
        assert not transactions.on_data_batch(data(11, producer_id=8))
        assert not transactions.on_data_batch(data(11, transactional=False))
        assert transactions.on_control_batch(*marker(12, committed=False)) == (False, aborted)
        assert not transactions.on_data_batch(data(13))

    def test_a_marker_without_data_since_the_last_marker_is_empty(self) -> None:
        transactions = CleanedTransactions([])
        assert transactions.on_control_batch(*marker(1, committed=True)) == (True, None)
        transactions.on_data_batch(data(2))
        assert transactions.on_control_batch(*marker(3, committed=True)) == (False, None)
        assert transactions.on_control_batch(*marker(4, committed=True)) == (True, None)
        assert transactions.on_control_batch(*marker(5, committed=False)) == (True, None)

    def test_an_abort_marker_is_empty_without_data_though_the_index_has_its_transaction(
        self,
    ) -> None:
        transactions = CleanedTransactions([AbortedTransaction(7, 10, 12, 13)])
        assert transactions.on_control_batch(*marker(12, committed=False)) == (True, None)
        transactions.on_data_batch(data(13))
        assert transactions.on_control_batch(*marker(14, committed=True)) == (False, None)

    def test_transactions_of_one_producer_follow_each_other(self) -> None:
        first, second = AbortedTransaction(7, 0, 1, 2), AbortedTransaction(7, 2, 3, 4)
        transactions = CleanedTransactions([second, first])
        for offset, aborted in ((0, first), (2, second)):
            assert transactions.on_data_batch(data(offset))
            assert transactions.on_control_batch(*marker(offset + 1, committed=False)) == (
                False,
                aborted,
            )

    def test_transactions_of_several_producers_overlap(self) -> None:
        aborted = AbortedTransaction(7, 0, 3, 4)
        transactions = CleanedTransactions([aborted])
        assert transactions.on_data_batch(data(0))
        assert not transactions.on_data_batch(data(1, producer_id=8))
        assert transactions.on_control_batch(*marker(2, producer_id=8, committed=True)) == (
            False,
            None,
        )
        assert transactions.on_control_batch(*marker(3, committed=False)) == (False, aborted)

    def test_a_control_batch_without_records_is_empty(self) -> None:
        """It was kept for its producer after its marker was removed (KAFKA-7467)."""
        header, _ = marker(5, committed=True)
        header = header._replace(record_count=0)
        assert CleanedTransactions([]).on_control_batch(header, b"") == (True, None)

    def test_other_control_records_stay(self) -> None:
        batch = build_batch(
            [Record(0, 0, control_key(ControlType.LEADER_CHANGE), b"\0\0", [])], control=True
        )
        verdict = CleanedTransactions([]).on_control_batch(read_header(batch), batch)
        assert verdict == (False, None)


def control_offsets(harness: CleanerHarness) -> list[int]:
    return [header.base_offset for header, _ in harness.batches() if header.is_control]


def aborted_ranges(harness: CleanerHarness) -> list[tuple[int, int]]:
    return harness.log.aborted_transactions(0, harness.log.log_end_offset)


def make_dirty(harness: CleanerHarness) -> None:
    """Something new to clean, so that the next round does so."""
    harness.write((b"other", b"%d" % harness.log.log_end_offset))
    harness.roll_and_clean()


def test_an_aborted_transaction_goes_in_three_cleanings(harness: CleanerHarness) -> None:
    """First its data, then its marker gets a horizon, and after that the marker goes."""
    harness.write_in_transaction((A, b"aborted"))
    harness.end_transaction(committed=False)
    harness.log.producers.entries.clear()  # expired
    make_dirty(harness)
    assert (A, b"aborted") not in [(key, value) for _, key, value in harness.values()]
    assert control_offsets(harness) == [1]
    assert aborted_ranges(harness) == [(7, 0)]
    make_dirty(harness)
    horizons = [header.delete_horizon_ms for header, _ in harness.batches() if header.is_control]
    assert horizons == [harness.now_ms + DAY_MS]
    assert aborted_ranges(harness) == []
    harness.now_ms += DAY_MS - 1
    make_dirty(harness)
    assert control_offsets(harness) == [1]
    harness.now_ms += 1
    make_dirty(harness)
    assert control_offsets(harness) == []


def test_a_marker_goes_without_new_records_once_its_horizon_has_passed(
    harness: CleanerHarness,
) -> None:
    harness.write_in_transaction((A, b"aborted"))
    harness.end_transaction(committed=False)
    harness.log.producers.entries.clear()
    make_dirty(harness)
    make_dirty(harness)
    harness.now_ms += DAY_MS
    harness.clean()
    assert control_offsets(harness) == []


def test_the_last_batch_of_a_live_producer_pins_the_marker_of_its_transaction(
    harness: CleanerHarness,
) -> None:
    """Without the marker, the empty batch would open a transaction at the next start."""
    harness.write_in_transaction((A, b"1"))
    harness.end_transaction(committed=True)
    harness.write((A, b"2"))
    for _ in range(3):
        make_dirty(harness)
        harness.now_ms += 2 * DAY_MS
    assert control_offsets(harness) == [1]
    for snapshot in harness.files(".snapshot"):
        (harness.log_dir.folder("prices") / snapshot).unlink()
    harness.kill()
    harness.start()
    assert harness.last_stable_offset(harness.log) == harness.log.log_end_offset
    assert harness.log.producers.entries[7].last_sequence == 0


@pytest.mark.parametrize("segment_bytes", [150, 1 << 20])
def test_a_transaction_across_groups_of_segments_is_aborted_as_a_whole(
    harness: CleanerHarness, segment_bytes: int
) -> None:
    """Its marker is in another group than its data (KAFKA-8351)."""
    harness.log.config = replace(COMPACTED, segment_bytes=segment_bytes)
    harness.write((A, b"before"))
    for sequence in range(4):
        harness.write_in_transaction((A, b"aborted"), (B, b"aborted"), sequence=2 * sequence)
        harness.roll()
    harness.write((C, b"between"))
    harness.end_transaction(committed=False)
    harness.roll_and_clean()
    assert harness.values() == [(0, A, b"before"), (9, C, b"between")]
    assert aborted_ranges(harness) == [(7, 1)]


def test_a_marker_beyond_what_the_map_could_hold_decides_about_earlier_data(
    harness: CleanerHarness,
) -> None:
    """The map ends within the segment, before the marker of its first batches (KAFKA-13727)."""
    harness.settings["log.cleaner.dedupe.buffer.size"] = 24 * 4  # three keys
    harness.write((A, b"before"))
    harness.write_in_transaction((A, b"aborted"))
    for number in range(5):
        harness.write((b"%d" % number, b"1"))
    harness.end_transaction(committed=False)
    harness.roll()
    for _ in range(4):
        harness.clean()
        assert (0, A, b"before") in harness.values()
        assert (1, A, b"aborted") not in harness.values()
    assert len(harness.values()) == 6


def test_a_transaction_that_was_aborted_in_the_clean_part_has_ended(
    harness: CleanerHarness,
) -> None:
    """The producer's next transaction is committed, and its keys replace older ones."""
    harness.write((A, b"1"))
    harness.write_in_transaction((A, b"aborted"))
    harness.end_transaction(committed=False)
    harness.write((B, b"1"))
    harness.roll_and_clean()
    assert aborted_ranges(harness) == [(7, 1)]
    harness.write_in_transaction((A, b"2"), (B, b"2"), sequence=1)
    harness.end_transaction(committed=True)
    harness.roll_and_clean()
    assert harness.values() == [(4, A, b"2"), (5, B, b"2")]


def test_keys_of_markers_are_not_keys_of_records(harness: CleanerHarness) -> None:
    """A record may have the same key as a commit marker."""
    key = control_key(ControlType.COMMIT)
    harness.write((key, b"1"))
    harness.write_in_transaction((A, b"1"))
    harness.end_transaction(committed=True)
    harness.roll_and_clean()
    assert harness.values() == [(0, key, b"1"), (1, A, b"1")]
    assert control_offsets(harness) == [2]
