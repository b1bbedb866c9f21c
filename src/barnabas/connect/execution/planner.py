"""Which items of a connector run next. Nothing here does I/O."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from barnabas.connect.connector import (
    AvailableRecords,
    Partition,
    Position,
    SinkConnector,
    TopicPartition,
)
from barnabas.spark.source.offsets import OffsetRange

MayRun = Callable[[int], bool]
"""Whether an item of a task may be planned."""


# Sinks


class SinkPlanner:
    """The topic partitions of a sink, their positions, and what is available."""

    def __init__(self, connector: SinkConnector, tasks: int, max_records: int) -> None:
        self._connector = connector
        self._tasks = tasks
        self._max_records = max_records
        self._decides_ends = (
            type(connector).end_of_next_write is not SinkConnector.end_of_next_write
        )
        self._order: list[TopicPartition] = []
        self._ends: dict[TopicPartition, int] = {}
        self._waiting_since_s: dict[TopicPartition, float] = {}
        self.positions: dict[TopicPartition, int] = {}

    @property
    def partitions(self) -> Sequence[TopicPartition]:
        return self._order

    def set_partitions(self, positions: Mapping[TopicPartition, int]) -> None:
        """Replaces the partitions. Must not be called while items are in flight."""
        self.positions = dict(positions)
        self._order = sorted(positions)
        self._ends = {key: end for key, end in self._ends.items() if key in positions}

    def on_log_ends(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Returns whether there may be something to do."""
        has_work = False
        for key, position in self.positions.items():
            end = ends.get(key)
            if end is None:
                continue
            self._ends[key] = end
            if end > position:
                has_work = True
                self._waiting_since_s.setdefault(key, time.monotonic())
        return has_work

    def on_written(self, positions: Mapping[TopicPartition, int]) -> None:
        for key, position in positions.items():
            if key in self.positions and position > self.positions[key]:
                self.positions[key] = position
                self._waiting_since_s.pop(key, None)
                if self._ends.get(key, position) > position:
                    self._waiting_since_s[key] = time.monotonic()

    def plan(self, may_run: MayRun) -> dict[int, tuple[OffsetRange, ...]]:
        """Returns ranges by task. Raises what the connector raises."""
        ranges: dict[int, list[OffsetRange]] = {}
        now_s = time.monotonic()
        for index, key in enumerate(self._order):
            start, end = self.positions[key], self._ends.get(key, 0)
            task = index % self._tasks
            if end <= start or not may_run(task):
                continue
            until = self._end_of_next_write(key, start, end, now_s)
            if until > start:
                ranges.setdefault(task, []).append(OffsetRange(*key, start, until))
        return {task: self._limited(of_task) for task, of_task in ranges.items()}

    def _end_of_next_write(self, key: TopicPartition, start: int, end: int, now_s: float) -> int:
        if not self._decides_ends:
            return end
        waiting_ms = int((now_s - self._waiting_since_s.get(key, now_s)) * 1000)
        until = self._connector.end_of_next_write(AvailableRecords(key, start, end, waiting_ms))
        return min(max(until, start), end)

    def _limited(self, ranges: Sequence[OffsetRange]) -> tuple[OffsetRange, ...]:
        """Cuts ranges to the records of one item, unless the connector has decided on them."""
        if self._decides_ends:
            return tuple(ranges)
        share = max(1, self._max_records // len(ranges))
        return tuple(
            OffsetRange(each.topic, each.partition, each.start, min(each.end, each.start + share))
            for each in ranges
        )


# Sources


@dataclass(slots=True)
class SourcePartitionState:
    """A partition of a source."""

    partition: Partition
    position: Position | None
    is_ready: bool = True
    """Whether a read may find rows."""
    check_s: float = 0
    """When to ask for new rows, by the monotonic clock."""


class SourcePlanner:
    """The partitions of a source, and which of them have something new."""

    def __init__(self, tasks_max: int) -> None:
        self._tasks_max = tasks_max
        self._states: dict[str, SourcePartitionState] = {}

    @property
    def tasks(self) -> int:
        return max(1, min(self._tasks_max, len(self._states)))

    def set_partitions(
        self, partitions: Iterable[Partition], position_of: Callable[[Partition], Position | None]
    ) -> None:
        """Adds and removes partitions. Must not be called while items are in flight."""
        self._states = {
            key: self._states.get(key) or SourcePartitionState(partition, position_of(partition))
            for key, partition in sorted((partition_key(each), each) for each in partitions)
        }

    def has_partitions(self, partitions: Iterable[Partition]) -> bool:
        return {partition_key(each) for each in partitions} == self._states.keys()

    def reset_positions(self, position_of: Callable[[Partition], Position | None]) -> None:
        for state in self._states.values():
            state.position, state.is_ready = position_of(state.partition), True

    def states(self) -> Iterator[tuple[int, SourcePartitionState]]:
        """Yields the task and the state of each partition."""
        tasks = self.tasks
        for index, state in enumerate(self._states.values()):
            yield index % tasks, state

    def plan(self, may_run: MayRun) -> dict[int, list[SourcePartitionState]]:
        """Returns the partitions to read by task."""
        planned: dict[int, list[SourcePartitionState]] = {}
        for task, state in self.states():
            if state.is_ready and may_run(task):
                planned.setdefault(task, []).append(state)
        return planned

    def on_read(self, partition: Partition, position: Position | None, pause_s: float) -> None:
        """A read is committed. Without a new position, the next one follows after a pause."""
        state = self._states.get(partition_key(partition))
        if state is None:
            return
        state.is_ready = False
        if position is None:
            state.check_s = time.monotonic() + pause_s
        else:
            state.position, state.check_s = position, 0


def partition_key(partition: Partition) -> str:
    return json.dumps(partition, sort_keys=True)
