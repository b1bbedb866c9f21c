"""The states of a connector's tasks, and when a failed task may run again.

    RUNNING ──error──▶ FAILED ──backoff, or restart──▶ RESTARTING ──success, or idle──▶ RUNNING

An error that may go away by itself (RetriableError) leaves a task RUNNING, as in Kafka Connect, but
it pauses as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.connect.execution.settings import TaskSettings
from barnabas.connect.model import State

OnState = Callable[[int, State, str | None], None]
"""Called with a task, its new state and its trace."""

_FIRST_PAUSE_MS = 1_000
_MAX_PAUSE_MS = 60_000
"""The pauses after retriable errors, if failed tasks are not restarted."""


@dataclass(slots=True)
class _Task:
    state: State = State.UNASSIGNED
    failures: int = 0
    """Since the last success."""
    retry_s: float = 0
    """When the task may run, by the monotonic clock."""
    is_query_down: bool = False
    """Whether the task does not run because its query does not."""


class TaskStates:
    def __init__(
        self,
        settings: TaskSettings,
        on_state: OnState,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._on_state = on_state
        self._clock = clock
        self._tasks: list[_Task] = []

    def __len__(self) -> int:
        return len(self._tasks)

    def state(self, task: int) -> State:
        return self._tasks[task].state

    def resize(self, count: int) -> None:
        """The connector has that many tasks. New ones are RUNNING."""
        self.set_count(count, State.RUNNING)

    def set_count(self, count: int, state: State) -> None:
        """The connector has that many tasks; new ones are in the state."""
        del self._tasks[count:]
        for number in range(len(self._tasks), count):
            self._tasks.append(_Task())
            self._set(number, state)

    def adopt(self, previous: TaskStates) -> None:
        """Take over the tasks of an earlier run of the connector."""
        self._tasks = [_Task(task.state) for task in previous._tasks]

    def on_started(self) -> None:
        """The connector has started: tasks that were not failed are RUNNING."""
        for number, task in enumerate(self._tasks):
            if task.state in (State.FAILED, State.RESTARTING):
                self.restart(number)
            elif task.state is not State.RUNNING:
                self._set(number, State.RUNNING)

    def set_all(self, state: State, trace: str | None = None) -> None:
        for number, task in enumerate(self._tasks):
            if task.state is not state:
                self._set(number, state, trace)

    def may_run(self, task: int) -> bool:
        entry = self._tasks[task]
        if entry.state is State.FAILED and not self._settings.restart_initial_ms:
            return False
        return self._clock() >= entry.retry_s

    def retry_delay_s(self) -> float | None:
        """Returns the time until the next paused task may run; None if there is none."""
        now_s = self._clock()
        delays = [
            task.retry_s - now_s
            for number, task in enumerate(self._tasks)
            if task.retry_s > now_s
            and (task.state is not State.FAILED or self._settings.restart_initial_ms)
        ]
        return min(delays, default=None)

    def on_planned(self, task: int) -> None:
        """An item of the task is about to run."""
        if self._tasks[task].state is State.FAILED:
            self._set(task, State.RESTARTING)

    def on_idle(self, task: int) -> None:
        """The task may run, and there is nothing to do."""
        self.on_planned(task)
        if self._tasks[task].state is State.RESTARTING:
            self._tasks[task].failures = 0
            self._set(task, State.RUNNING)

    def on_query_down(self, trace: str | None) -> None:
        """The query of the tasks does not run. With a trace, it has failed several times."""
        state = State.RESTARTING if trace is None else State.FAILED
        for number, task in enumerate(self._tasks):
            is_failed = task.state is State.FAILED and not task.is_query_down
            if is_failed or (task.is_query_down and task.state is state):
                continue
            task.is_query_down = True
            self._set(number, state, trace)

    def on_query_up(self) -> None:
        for number, task in enumerate(self._tasks):
            if task.is_query_down:
                task.is_query_down = False
                self.restart(number)

    def on_success(self, task: int) -> None:
        entry = self._tasks[task]
        entry.failures, entry.retry_s = 0, 0
        if entry.state is not State.RUNNING:
            self._set(task, State.RUNNING)

    def on_failure(self, task: int, trace: str) -> None:
        self._pause(task)
        self._set(task, State.FAILED, trace)

    def on_retriable_error(self, task: int) -> float:
        """Returns the pause in seconds."""
        return self._pause(task)

    def restart(self, task: int) -> None:
        entry = self._tasks[task]
        entry.failures, entry.retry_s = 0, 0
        if entry.state is not State.RESTARTING:
            self._set(task, State.RESTARTING)

    def _pause(self, task: int) -> float:
        entry = self._tasks[task]
        initial_ms = self._settings.restart_initial_ms or _FIRST_PAUSE_MS
        longest_ms = max(self._settings.restart_max_ms or _MAX_PAUSE_MS, initial_ms)
        pause_s = min(initial_ms << min(entry.failures, 20), longest_ms) / 1000
        entry.failures += 1
        entry.retry_s = self._clock() + pause_s
        return pause_s

    def _set(self, task: int, state: State, trace: str | None = None) -> None:
        self._tasks[task].state = state
        self._on_state(task, state, trace)
