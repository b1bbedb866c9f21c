"""Few tasks for little, as many as are asked for, none too large."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.spark.source.offsets import OffsetRange
from barnabas.spark.source.options import TaskSizing
from barnabas.spark.source.task_planner import MAX_TASKS, plan


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", index, 10, 10 + size) for index, size in enumerate(sizes)]


def test_many_small_partitions_are_one_task() -> None:
    (task,) = plan(ranges(*[10] * 200), TaskSizing())
    assert len(task) == 200


def test_empty_ranges_need_no_task() -> None:
    assert plan(ranges(0, 0), TaskSizing()) == []


def test_each_large_partition_is_a_task() -> None:
    assert [len(task) for task in plan(ranges(*[500_000] * 4), TaskSizing())] == [1, 1, 1, 1]


def test_a_thousand_large_partitions_are_not_a_thousand_tasks() -> None:
    tasks = plan(ranges(*[50_000] * 1000), TaskSizing())
    assert len(tasks) == MAX_TASKS
    assert {len(task) for task in tasks} <= {3, 4}


def test_min_partitions_splits_the_largest() -> None:
    tasks = plan(ranges(100, 700), TaskSizing(min_partitions=8))
    assert len(tasks) == 8
    assert sum(each.partition for task in tasks for each in task) == 7


def test_max_records_limits_each_task() -> None:
    tasks = plan(ranges(1000, 30, 30), TaskSizing(max_records=300))
    assert max(sum(map(len, task)) for task in tasks) <= 300


@given(
    st.lists(st.integers(0, 50_000), max_size=30),
    st.none() | st.integers(1, 100),
    st.none() | st.integers(500, 100_000),
)
def test_every_offset_is_read_by_one_task_after_those_before_it(
    sizes: list[int], min_partitions: int | None, max_records: int | None
) -> None:
    wanted = ranges(*sizes)
    tasks = plan(wanted, TaskSizing(min_partitions, max_records))
    read: dict[int, list[OffsetRange]] = {}
    for task in tasks:
        for each in task:
            read.setdefault(each.partition, []).append(each)
    for each in wanted:
        pieces = read.get(each.partition, [])
        edges = [edge for piece in pieces for edge in (piece.start, piece.end)]
        assert edges[1:-1:2] == edges[2::2]
        assert (edges[:1] + edges[-1:] if edges else []) == (
            [each.start, each.end] if len(each) else []
        )
    if max_records is not None:
        assert all(sum(map(len, task)) <= max_records for task in tasks)
    if min_partitions is not None:
        assert len(tasks) >= min(min_partitions, sum(sizes))
