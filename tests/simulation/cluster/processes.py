"""Processes that share one event loop, and can be stopped, continued and killed like real ones.

Whatever a process schedules carries the process in its context: callbacks, timers and tasks, and
all that follows from them. So the loop knows whose step is next, and leaves out the steps of the
dead; those of one that is stopped wait until it goes on.
"""

import asyncio
import heapq
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

from tests.simulation.clock import SimulatedLoop

_PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)

NOBODY = Context()
"""What runs in it belongs to no process: the network, the faults, the checkers."""


def current_process() -> "Process":
    """Whose step this is."""
    process = process_at_work()
    assert process is not None, "only a process may ask"
    return process


def process_at_work() -> "Process | None":
    """Whose step this is, if it is anybody's."""
    return _PROCESS.get()


class Process:
    """One life of a node, or of a client. `host` is the machine it runs on."""

    def __init__(self, name: str, host: str, loop: "ProcessLoop") -> None:
        self.name = name
        self.host = host
        self.is_dead = False
        self.is_stopped = False
        self._loop = loop
        self._held: list[_Step | _TimedStep] = []
        self._context = NOBODY.copy()
        self._context.run(_PROCESS.set, self)

    def submit(self, callback: Callable[..., object], *args: Any) -> None:
        """Something reaches the process from outside."""
        if not self.is_dead:
            self._loop.call_soon(callback, *args, context=self._context)

    def spawn(self, coroutine: Any) -> "asyncio.Task[Any]":
        """Begin a task of this process."""
        return self._loop.create_task(coroutine, context=self._context.copy())

    def stop(self) -> None:
        """As by SIGSTOP: it does nothing, and does not know."""
        self.is_stopped = True

    def go_on(self) -> None:
        self.is_stopped = False
        held, self._held = self._held, []
        if not self.is_dead:
            self._loop.take_up(held)

    def kill(self) -> None:
        """As by SIGKILL: nothing of what it had in mind will happen."""
        self.is_dead = True
        self._held.clear()

    def may_run(self, step: "_Step | _TimedStep") -> bool:
        if self.is_stopped and not self.is_dead:
            self._held.append(step)
        return not self.is_dead and not self.is_stopped


class _Step(asyncio.Handle):
    """A callback of a process."""

    __slots__ = ("process",)
    process: Process

    def _run(self) -> None:
        if self.process.may_run(self):
            super()._run()


class _TimedStep(asyncio.TimerHandle):
    """A timer of a process."""

    __slots__ = ("process",)
    process: Process

    def _run(self) -> None:
        if self.process.may_run(self):
            super()._run()


class ProcessLoop(SimulatedLoop):
    """Runs the steps of all processes, in one order."""

    _ready: Any
    _scheduled: Any

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []
        """All that ever began. Those of the dead are kept, or Python would clean up after them."""
        self.set_task_factory(self._make_task)

    def _make_task(
        self, _: asyncio.AbstractEventLoop, coroutine: Any, **kwargs: Any
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=self, **kwargs)
        self.tasks.append(task)
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        process = _process_of(context)
        if process is None:
            return super().call_soon(callback, *args, context=context)
        step = _Step(callback, args, self, context)
        step.process = process
        self._ready.append(step)
        return step

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        process = _process_of(context)
        if process is None:
            return super().call_at(when, callback, *args, context=context)
        step = _TimedStep(when, callback, args, self, context)
        step.process = process
        step._scheduled = True  # type: ignore[attr-defined]
        heapq.heappush(self._scheduled, step)
        return step

    def take_up(self, steps: "list[_Step | _TimedStep]") -> None:
        """What waited is due now."""
        self._ready.extend(steps)

    def bury(self) -> None:
        """At the end of all: nobody complains about tasks that never end."""
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                task.get_coro().close()
        self.tasks.clear()


def _process_of(context: Context | None) -> Process | None:
    return _PROCESS.get() if context is None else context.get(_PROCESS)


def by_nobody(
    loop: ProcessLoop, delay_s: float, callback: Callable[..., object], *args: Any
) -> asyncio.TimerHandle:
    """Call it after a while, whoever is at it now."""
    return loop.call_later(delay_s, callback, *args, context=NOBODY)
