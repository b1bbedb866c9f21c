"""Which items run next, and when tasks run again. Nothing here does I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.connect.execution.memory import ExactMemorySink, PatientSink

from barnabas.connect.execution.planner import SinkPlanner, SourcePlanner
from barnabas.connect.execution.settings import TaskSettings
from barnabas.connect.execution.task_states import TaskStates
from barnabas.connect.model import State
from barnabas.spark.source.offsets import OffsetRange

ALWAYS = [True] * 8


def may_run(task: int) -> bool:
    return ALWAYS[task]


def test_partitions_of_a_sink_are_divided_among_its_tasks() -> None:
    planner = SinkPlanner(ExactMemorySink(), 2, 1000)
    planner.set_partitions({("b", 0): 5, ("a", 0): 0, ("a", 1): 0})
    assert planner.on_log_ends({("a", 0): 10, ("a", 1): 10, ("b", 0): 10})
    assert planner.plan(may_run) == {
        0: (OffsetRange("a", 0, 0, 10), OffsetRange("b", 0, 5, 10)),
        1: (OffsetRange("a", 1, 0, 10),),
    }
    assert planner.plan(lambda task: task == 1) == {1: (OffsetRange("a", 1, 0, 10),)}


def test_an_item_has_at_most_the_records_of_the_setting() -> None:
    planner = SinkPlanner(ExactMemorySink(), 1, 10)
    planner.set_partitions({("a", 0): 0, ("a", 1): 98})
    planner.on_log_ends({("a", 0): 100, ("a", 1): 100})
    assert planner.plan(may_run)[0] == (OffsetRange("a", 0, 0, 5), OffsetRange("a", 1, 98, 100))
    planner.on_written({("a", 0): 5, ("a", 1): 100})
    assert planner.plan(may_run)[0] == (OffsetRange("a", 0, 5, 15),)


def test_the_end_that_a_sink_decides_on_is_not_cut() -> None:
    planner = SinkPlanner(PatientSink(), 1, 1)
    planner.set_partitions({("a", 0): 0})
    planner.on_log_ends({("a", 0): 2})
    assert planner.plan(may_run) == {}
    planner.on_log_ends({("a", 0): 7})
    assert planner.plan(may_run)[0] == (OffsetRange("a", 0, 0, 3),)


def test_nothing_is_planned_at_the_end_of_the_log() -> None:
    planner = SinkPlanner(ExactMemorySink(), 1, 10)
    planner.set_partitions({("a", 0): 3})
    assert not planner.on_log_ends({("a", 0): 3, ("other", 0): 9})
    assert planner.plan(may_run) == {}


def test_partitions_of_a_source_keep_their_positions_when_others_are_added() -> None:
    planner = SourcePlanner(8)
    planner.set_partitions([{"t": "b"}], lambda _: None)
    planner.on_read({"t": "b"}, {"row": 3}, 0)
    stored: Mapping[str, Any] = {"row": 9}
    planner.set_partitions([{"t": "a"}, {"t": "b"}], lambda _: stored)
    assert [(task, state.position) for task, state in planner.states()] == [
        (0, {"row": 9}),
        (1, {"row": 3}),
    ]
    assert list(planner.plan(may_run)) == [0]  # the other was read, and is not known to have more


def test_a_source_has_no_more_tasks_than_partitions() -> None:
    planner = SourcePlanner(8)
    assert planner.tasks == 1
    planner.set_partitions([{"t": number} for number in range(3)], lambda _: None)
    assert planner.tasks == 3


class States:
    """The states of one task, on a clock that the test moves."""

    def __init__(self, initial_ms: int = 1000) -> None:
        self.now_s = 0.0
        self.seen: list[State] = []
        self.states = TaskStates(
            TaskSettings(1, 1, initial_ms, 4000),
            lambda _, state, __: self.seen.append(state),
            lambda: self.now_s,
        )
        self.states.resize(1)


def test_pauses_after_failures_double_up_to_the_maximum() -> None:
    world = States()
    pauses = []
    for _ in range(4):
        world.states.on_failure(0, "trace")
        assert not world.states.may_run(0)
        pause_s = world.states.retry_delay_s()
        assert pause_s is not None
        pauses.append(pause_s)
        world.now_s += pause_s
        assert world.states.may_run(0)
        world.states.on_planned(0)
    assert pauses == [1, 2, 4, 4]
    world.states.on_success(0)
    assert world.seen == [State.RUNNING, *[State.FAILED, State.RESTARTING] * 4, State.RUNNING]
    world.states.on_failure(0, "trace")
    assert world.states.retry_delay_s() == 1


def test_without_restarts_a_failed_task_waits_for_the_operator() -> None:
    world = States(initial_ms=0)
    world.states.on_failure(0, "trace")
    world.now_s = 1e9
    assert not world.states.may_run(0)
    assert world.states.retry_delay_s() is None
    world.states.restart(0)
    assert world.states.may_run(0)
    world.states.on_idle(0)
    assert world.seen == [State.RUNNING, State.FAILED, State.RESTARTING, State.RUNNING]


@pytest.mark.parametrize("trace", [None, "the query has failed"])
def test_tasks_do_not_run_while_their_query_does_not(trace: str | None) -> None:
    world = States()
    world.states.on_query_down(trace)
    world.states.on_query_down(trace)
    down = State.RESTARTING if trace is None else State.FAILED
    assert world.seen == [State.RUNNING, down]
    world.states.on_query_up()
    world.states.on_idle(0)
    assert world.seen[-1] is State.RUNNING


def test_a_task_that_has_failed_itself_stays_failed_while_its_query_is_down() -> None:
    world = States()
    world.states.on_failure(0, "trace")
    world.states.on_query_down(None)
    world.states.on_query_up()
    assert world.seen == [State.RUNNING, State.FAILED]
    assert not world.states.may_run(0)
