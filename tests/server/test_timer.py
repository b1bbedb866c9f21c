"""Tasks run once, in order, never early, and not at all after they are cancelled."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from barnabas.server.timer import Timer, TimerQueue, TimerTask


def silent() -> None:
    """A task that does nothing."""


class DeadlinesMachine(RuleBasedStateMachine):
    """Compared with a plain list: the same tasks are due after any adds and removes."""

    def __init__(self) -> None:
        super().__init__()
        self.deadlines = TimerQueue()
        self.expected: list[TimerTask] = []
        self.gone: list[TimerTask] = []
        self.now_ms = 0

    @rule(delay_ms=st.integers(0, 50))
    def add(self, delay_ms: int) -> None:
        alarm = TimerTask(self.now_ms + delay_ms, silent)
        self.deadlines.add(alarm)
        self.expected.append(alarm)

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        if self.expected:
            alarm = data.draw(st.sampled_from(self.expected))
            assert self.deadlines.remove(alarm)
            self.expected.remove(alarm)
            self.gone.append(alarm)

    @rule(data=st.data(), delay_ms=st.integers(0, 50))
    def postpone(self, data: st.DataObject, delay_ms: int) -> None:
        if self.expected:
            alarm = data.draw(st.sampled_from(self.expected))
            if self.deadlines.postpone(alarm, self.now_ms + delay_ms):
                assert alarm.deadline_ms == self.now_ms + delay_ms
            else:
                assert self.now_ms + delay_ms < alarm.deadline_ms

    @rule(data=st.data())
    def postpone_what_is_gone(self, data: st.DataObject) -> None:
        if self.gone:
            assert not self.deadlines.postpone(data.draw(st.sampled_from(self.gone)), 1 << 40)

    @rule(data=st.data())
    def remove_what_is_gone(self, data: st.DataObject) -> None:
        if self.gone:
            assert not self.deadlines.remove(data.draw(st.sampled_from(self.gone)))

    @rule(later_ms=st.integers(0, 30))
    def advance(self, later_ms: int) -> None:
        self.now_ms += later_ms
        due = self.deadlines.pop_due(self.now_ms)
        assert [a.deadline_ms for a in due] == sorted(a.deadline_ms for a in due)
        expected = [a for a in self.expected if a.deadline_ms <= self.now_ms]
        assert sorted(map(id, due)) == sorted(map(id, expected))
        self.expected = [a for a in self.expected if a.deadline_ms > self.now_ms]
        self.gone += due

    @invariant()
    def agrees(self) -> None:
        assert len(self.deadlines) == len(self.expected)
        earliest = min((a.deadline_ms for a in self.expected), default=None)
        next_ms = self.deadlines.next_deadline_ms()
        if earliest is None or next_ms is None:
            assert next_ms is earliest
        else:
            assert next_ms <= earliest  # that of a task that was postponed may come first


TestDeadlines = DeadlinesMachine.TestCase


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=50))
def test_tasks_that_are_added_and_cancelled_leave_nothing_behind(delays: list[int]) -> None:
    deadlines = TimerQueue()
    for _ in range(60):
        alarms = [TimerTask(delay, silent) for delay in delays]
        for alarm in alarms:
            deadlines.add(alarm)
        for alarm in alarms:
            deadlines.remove(alarm)
    assert len(deadlines) == 0
    assert len(deadlines._ticks) <= 1024 + 2 * len(delays)


class ManualLoop:
    """As much of an event loop as a timer needs, with a clock the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[tuple[float, Callable[[], None], ManualHandle]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> "ManualHandle":
        handle = ManualHandle()
        self.calls.append((when, callback, handle))
        return handle

    @property
    def pending(self) -> list[float]:
        return [when for when, _, handle in self.calls if not handle.cancelled]

    def advance_to(self, now: float) -> None:
        self.now = now
        due = [call for call in self.calls if call[0] <= now]
        self.calls = [call for call in self.calls if call[0] > now]
        for _, callback, handle in due:
            if not handle.cancelled:
                callback()


class ManualHandle:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def a_timer() -> tuple[Timer, ManualLoop]:
    loop = ManualLoop()
    return Timer(loop), loop  # type: ignore[arg-type]


def test_one_timer_of_the_loop_serves_all_tasks() -> None:
    timer, loop = a_timer()
    rung: list[int] = []
    for delay_ms in (30, 10, 20, 10, 500):
        timer.call_after(delay_ms, lambda delay_ms=delay_ms: rung.append(delay_ms))  # type: ignore[misc]
        assert len(loop.pending) == 1
    loop.advance_to(100.0201)
    assert rung == [10, 10, 20]
    assert len(loop.pending) == 1
    loop.advance_to(101)
    assert rung == [10, 10, 20, 30, 500]
    assert loop.pending == []


def test_a_task_never_runs_early() -> None:
    timer, loop = a_timer()
    loop.now = 100.0005
    rung: list[float] = []
    timer.call_after(10, lambda: rung.append(loop.now))
    loop.advance_to(100.0104)
    assert rung == []
    loop.advance_to(100.011)
    assert rung == [100.011]


def test_a_cancelled_task_does_not_run() -> None:
    timer, loop = a_timer()
    rung: list[str] = []
    first = timer.call_after(10, lambda: rung.append("first"))
    timer.call_after(20, lambda: rung.append("second"))
    timer.cancel(first)
    timer.cancel(first)
    loop.advance_to(100.02)
    assert rung == ["second"]
    assert len(timer) == 0


@pytest.mark.parametrize("delay_ms", [1, 10, 30])
def test_a_restarted_task_runs_once_after_its_new_delay(delay_ms: int) -> None:
    timer, loop = a_timer()
    rung: list[float] = []
    task = timer.call_after(10, lambda: rung.append(loop.now))
    loop.advance_to(100.005)
    timer.restart(task, delay_ms)
    for tick in range(6, 60):
        loop.advance_to(100 + tick / 1000)
    assert rung == [100 + (5 + delay_ms) / 1000]
    assert len(timer) == 0


def test_a_task_that_is_restarted_often_leaves_the_queue_as_it_is() -> None:
    timer, loop = a_timer()
    task = timer.call_after(10, silent)
    before = [*timer._queue._ticks]
    for tick in range(9):
        loop.advance_to(100 + tick / 1000)
        assert timer.restart(task, 10) is task
    assert timer._queue._ticks == before
    assert len(loop.pending) == 1
    timer.cancel(task)
    assert len(timer) == 0


def test_a_task_can_restart_another_that_is_due_at_the_same_time() -> None:
    timer, loop = a_timer()
    rung: list[float] = []
    timer.call_after(10, lambda: timer.restart(second, 20))
    second = timer.call_after(10, lambda: rung.append(loop.now))
    loop.advance_to(100.01)
    assert rung == []
    loop.advance_to(100.03)
    assert rung == [100.03]


def test_a_task_can_cancel_another_that_is_due_at_the_same_time() -> None:
    timer, loop = a_timer()
    rung: list[str] = []
    timer.call_after(10, lambda: timer.cancel(second))
    second = timer.call_after(10, lambda: rung.append("second"))
    loop.advance_to(100.01)
    assert rung == []


def test_a_task_added_by_a_task_runs_too() -> None:
    timer, loop = a_timer()
    rung: list[str] = []

    def again() -> None:
        rung.append("first")
        timer.call_after(5, lambda: rung.append("second"))

    timer.call_after(10, again)
    timer.call_after(1000, lambda: rung.append("last"))
    loop.advance_to(100.01)
    loop.advance_to(100.02)
    assert rung == ["first", "second"]


def test_a_task_that_raises_does_not_stop_the_others() -> None:
    timer, loop = a_timer()
    rung: list[str] = []

    def fail() -> None:
        raise LookupError

    timer.call_after(10, fail)
    timer.call_after(10, lambda: rung.append("same"))
    timer.call_after(20, lambda: rung.append("later"))
    loop.advance_to(100.01)
    loop.advance_to(100.02)
    assert rung == ["same", "later"]


def test_the_timer_runs_on_a_real_loop() -> None:
    async def scenario() -> list[int]:
        loop = asyncio.get_running_loop()
        timer = Timer(loop)
        rung: list[int] = []
        done = loop.create_future()
        timer.call_after(2, lambda: rung.append(2))
        timer.call_after(1, lambda: rung.append(1))
        timer.call_after(3, lambda: done.set_result(None))
        await asyncio.wait_for(done, 60)
        return rung

    assert sorted(asyncio.run(scenario())) == [1, 2]  # the second was set a moment later
