"""Offsets to begin and to end at, by what was asked and what the cluster says."""

from collections.abc import Mapping

import pytest

from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.offset_bounds import depends_on_now, resolve
from barnabas.spark.source.offsets import (
    EARLIEST,
    LATEST,
    Bound,
    PartitionOffsets,
    PartitionTimestamps,
    SameOffset,
    SourcePartition,
    Timestamp,
)

A, B = SourcePartition("t", 0), SourcePartition("t", 1)


def ask(wanted: Mapping[SourcePartition, int]) -> dict[SourcePartition, int]:
    """Two partitions of 100 records, of which record n was written at time n."""
    known = {EARLIEST: 0, LATEST: 100}
    return {
        each: known.get(time, time if time < 100 else -1)
        for each, time in wanted.items()
        if each in (A, B)
    }


def resolved(bound: Bound, *, is_late_latest: bool = False) -> dict[SourcePartition, int]:
    return resolve(bound, {A, B}, ask, option="startingOffsets", is_late_latest=is_late_latest)


def test_given_offsets_are_used_and_symbolic_ones_looked_up() -> None:
    assert resolved(SameOffset(EARLIEST)) == {A: 0, B: 0}
    assert resolved(PartitionOffsets({A: 7, B: LATEST})) == {A: 7, B: 100}


def test_timestamps_are_looked_up() -> None:
    assert resolved(Timestamp(40)) == {A: 40, B: 40}
    assert resolved(PartitionTimestamps({A: 40, B: 50})) == {A: 40, B: 50}


def test_a_timestamp_after_the_last_record_is_the_end_if_the_strategy_is_latest() -> None:
    assert resolved(PartitionTimestamps({A: 40, B: 500}), is_late_latest=True) == {A: 40, B: 100}
    with pytest.raises(SourceError, match=r"t \[1\] has no record at or after 500 ms"):
        resolved(PartitionTimestamps({A: 40, B: 500}))


def test_an_option_must_name_exactly_the_partitions() -> None:
    with pytest.raises(OptionError, match=r"t \[1\] is missing"):
        resolved(PartitionOffsets({A: 7}))
    with pytest.raises(OptionError, match=r"not read or do not exist: t \[9\]"):
        resolved(PartitionOffsets({A: 7, B: 7, SourcePartition("t", 9): 7}))


def test_a_partition_that_does_not_exist_is_named() -> None:
    with pytest.raises(SourceError, match=r"no partition u \[0\]"):
        resolve(
            SameOffset(EARLIEST),
            {SourcePartition("u", 0)},
            ask,
            option="startingOffsets",
            is_late_latest=False,
        )


def test_only_bounds_with_latest_depend_on_now() -> None:
    assert depends_on_now(SameOffset(LATEST))
    assert depends_on_now(Timestamp(5))
    assert not depends_on_now(SameOffset(EARLIEST))
    assert not depends_on_now(PartitionOffsets({A: 5, B: EARLIEST}))
