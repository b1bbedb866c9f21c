"""How far a micro-batch goes."""

import pytest

from barnabas.spark.source.admission import (
    AdmissionPacer,
    apply_rate_limit,
    available_records,
    ranges_between,
)
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange, SourcePartition
from barnabas.spark.source.options import AdmissionLimits

A, B, C = (SourcePartition("t", index) for index in range(3))
STRICT, LENIENT = DataLossPolicy(True, 1000), DataLossPolicy(False, 1000)


def test_the_rate_limit_is_shared_in_proportion_to_available_records() -> None:
    ends = apply_rate_limit({A: 0, B: 0, C: 50}, {A: 1000, B: 3000, C: 50}, 400)
    assert ends == {A: 100, B: 300, C: 50}


def test_a_small_partition_advances_by_at_least_one() -> None:
    assert apply_rate_limit({A: 0, B: 0}, {A: 1, B: 100_000}, 10) == {A: 1, B: 9}


def test_below_the_rate_limit_everything_is_read() -> None:
    assert apply_rate_limit({A: 0, B: 7}, {A: 5, B: 9}, 7) == {A: 5, B: 9}


def test_a_partition_whose_end_moved_back_has_no_available_records() -> None:
    assert available_records({A: 10, B: 0}, {A: 3, B: 4}) == 4


def test_too_few_records_wait_until_the_maximum_delay() -> None:
    pace = AdmissionPacer(AdmissionLimits(min_offsets=10, max_delay_ms=60_000))
    assert not pace.should_wait(1, 100.0)  # the first batch never waits
    assert pace.should_wait(9, 101.0)
    assert not pace.should_wait(10, 102.0)
    assert pace.should_wait(9, 161.0)
    assert not pace.should_wait(9, 162.0)


def test_without_a_minimum_nothing_waits() -> None:
    assert not AdmissionPacer(AdmissionLimits()).should_wait(0, 0.0)


def test_new_partitions_are_read_from_their_start() -> None:
    ranges = ranges_between({A: 5}, {A: 7, B: 3}, {B: 0}, STRICT)
    assert ranges == [OffsetRange("t", 0, 5, 7), OffsetRange("t", 1, 0, 3)]


@pytest.mark.parametrize(
    ("start", "end", "new", "what"),
    [
        ({A: 5, B: 2}, {A: 5}, {}, r"t \[1\], read to offset 2, no longer exists"),
        ({A: 5}, {A: 3}, {}, r"t \[0\] ends at offset 3, although it was read to 5"),
        ({A: 5}, {A: 5, B: 9}, {B: 4}, r"t \[1\] is new, and starts at offset 4"),
        ({A: 5}, {A: 5, B: 9}, {}, r"t \[1\] was new, and no longer exists"),
    ],
)
def test_data_loss_is_raised_or_skipped(
    start: dict[SourcePartition, int],
    end: dict[SourcePartition, int],
    new: dict[SourcePartition, int],
    what: str,
) -> None:
    with pytest.raises(SourceError, match=what):
        ranges_between(start, end, new, STRICT)
    ranges_between(start, end, new, LENIENT)
