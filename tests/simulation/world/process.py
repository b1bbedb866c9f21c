"""Processes that share one event loop, and can be paused, resumed and killed like real ones.

Everything that a process schedules (callbacks, timers, tasks) has the process in its context, and
so has everything that follows from it. The loop skips the steps of a killed process, and holds
those of a paused one until it is resumed.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar
from typing import Any

from tests.simulation.world.clock import SimulatedLoop, Step

_PROCESS: ContextVar["Process | None"] = ContextVar("process", default=None)

NO_PROCESS = Context()
"""Code in this context belongs to no process: the network, the faults, the checkers."""


def current_process() -> "Process":
    """Returns the process whose step this is."""
    process = current_process_or_none()
    assert process is not None, "this is not a step of a process"
    return process


def current_process_or_none() -> "Process | None":
    return _PROCESS.get()


class Process:
    """One run of a node or of the clients. `host` is the name of the machine."""

    def __init__(self, name: str, host: str, loop: "ProcessLoop") -> None:
        self.name = name
        self.host = host
        self.is_killed = False
        self.is_paused = False
        self._loop = loop
        self._held: list[ProcessStep] = []
        self._context = NO_PROCESS.copy()
        self._context.run(_PROCESS.set, self)

    def submit(self, callback: Callable[..., object], *args: Any) -> None:
        """Calls it soon, as a step of this process."""
        if not self.is_killed:
            self._loop.call_soon(callback, *args, context=self._context)

    def run_now(self, callback: Callable[..., object], *args: Any) -> None:
        """Calls it at once, as a step of this process. The caller must not be one."""
        if self.is_paused:
            self.submit(callback, *args)
        elif not self.is_killed:
            try:
                self._context.run(callback, *args)
            except BaseException:
                if not self.is_killed:
                    raise  # otherwise the step has ended with the process, not with the caller

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> None:
        """Calls it after a delay, as a step of this process."""
        self._loop.call_later(delay_ms / 1000, callback, *args, context=self._context)

    def spawn(self, coroutine: Any) -> "asyncio.Task[Any]":
        """Starts a task of this process."""
        return self._loop.create_task(coroutine, context=self._context.copy())

    def pause(self) -> None:
        """As SIGSTOP does."""
        self.is_paused = True

    def resume(self) -> None:
        """As SIGCONT does."""
        self.is_paused = False
        held, self._held = self._held, []
        if not self.is_killed:
            self._loop.run_held(held)

    def kill(self) -> None:
        """As SIGKILL does: none of its scheduled steps will run."""
        self.is_killed = True
        self._held.clear()

    def hold(self, step: "ProcessStep") -> None:
        """Keeps a step of the paused process until it is resumed."""
        if not self.is_killed:
            self._held.append(step)


class ProcessStep(Step):
    """A step of a process."""

    __slots__ = ("process",)

    def __init__(
        self,
        when_s: float,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
        process: Process,
    ) -> None:
        super().__init__(when_s, callback, args, context)
        self.process = process

    def run(self) -> None:
        process = self.process
        if process.is_paused:
            process.hold(self)
        elif not process.is_killed:
            self.context.run(self.callback, *self.args)


class ProcessLoop(SimulatedLoop):
    """Runs the steps of all processes, in one order."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[asyncio.Task[Any]] = []
        """All tasks. Those of killed processes are referenced, or Python would finalize them."""
        self.set_task_factory(self._make_task)

    def _make_task(
        self, _: asyncio.AbstractEventLoop, coroutine: Any, **kwargs: Any
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=self, **kwargs)
        self.tasks.append(task)
        return task

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Step:
        step = _make_step(self._now_s, callback, args, context)
        self._ready.append(step)
        return step

    def call_at(  # type: ignore[override]
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Step:
        timer = _make_step(when, callback, args, context)
        self.add_timer(timer)
        return timer

    def call_later(  # type: ignore[override]
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> Step:
        timer = _make_step(self._now_s + delay, callback, args, context)
        self.add_timer(timer)
        return timer

    def call_without_process(
        self, delay_s: float, callback: Callable[..., object], *args: Any
    ) -> Step:
        """Calls it even if the current process is paused or killed: for messages and faults."""
        timer = Step(self._now_s + delay_s, callback, args, NO_PROCESS)
        self.add_timer(timer)
        return timer

    def run_held(self, steps: list[ProcessStep]) -> None:
        """Runs the steps that were held while their process was paused."""
        self._ready.extend(steps)

    def drop_tasks(self) -> None:
        """Closes tasks that never ended, without a warning."""
        for task in self.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            if not task.done():
                task.get_coro().close()
        self.tasks.clear()


def _make_step(
    when_s: float,
    callback: Callable[..., object],
    args: tuple[Any, ...],
    context: Context | None,
) -> Step:
    """Returns a step of the process of the context, or of the current one."""
    process = _PROCESS.get() if context is None else context.get(_PROCESS)
    if process is None:
        return Step(when_s, callback, args, context)
    return ProcessStep(when_s, callback, args, context, process)
