"""The events of a run: every checker sees every event, and the last ones are the trace."""

import logging
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from tests.simulation.world.clock import START_MS, SimulatedLoop
from tests.simulation.world.disk import Killed

TRACE_EVENTS = 20_000


class Violation(AssertionError):  # noqa: N818 - the domain's word for it
    """A promise was broken."""

    promise = "?"
    """The name of the checker that raised it."""


class Checker(Protocol):
    """Checks one promise."""

    def on_event(self, event: Any, now_ms: int) -> None:
        """Raises Violation if the event breaks the promise."""


class Events:
    """Passes events to the checkers, and ends the run at the first violation."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self.checkers: list[Checker] = []
        self.count = 0
        self.digest = 0
        """Equal for two runs with the same events."""
        self.failure: BaseException | None = None
        self.failed = loop.create_future()
        """Done when the run has failed."""
        self._trace: deque[tuple[int, Any]] = deque(maxlen=TRACE_EVENTS)

    def record(self, event: Any) -> None:
        """Adds an event to the trace, and passes it to the checkers."""
        now_ms = self._add(event)
        if self.failure is not None:
            return
        for checker in self.checkers:
            try:
                checker.on_event(event, now_ms)
            except Violation as violation:
                self.fail(violation, type(checker).__name__)

    def note(self, subject: str, text: str) -> None:
        """Adds a line to the trace."""
        self._add(Note(subject, text))

    def _add(self, event: Any) -> int:
        now_ms = self._loop.now_ms
        self.count += 1
        self.digest = zlib.crc32(f"{now_ms} {event.digest_key}".encode(), self.digest)
        self._trace.append((now_ms, event))
        return now_ms

    def check(self, check: Callable[..., None], *args: object) -> None:
        """Calls a method of a checker. A violation ends the run."""
        try:
            check(*args)
        except Violation as violation:
            self.fail(violation, type(getattr(check, "__self__", check)).__name__)

    def fail(self, failure: BaseException | None, promise: str = "?") -> None:
        """Ends the run. Only the first failure is reported."""
        if self.failure is None and failure is not None:
            if isinstance(failure, Violation) and failure.promise == "?":
                failure.promise = promise
            self.failure = failure
            self.note("FAILED", f"{type(failure).__name__}: {failure}")
            if not self.failed.done():
                self.failed.set_result(None)

    def on_loop_exception(self, _: object, context: dict[str, Any]) -> None:
        """The exception handler of the loop: an exception that escaped fails the run."""
        failure = context.get("exception")
        if not isinstance(failure, Killed):
            self.fail(failure or RuntimeError(str(context["message"])))

    @contextmanager
    def logged_errors_are_violations(self) -> Iterator[None]:
        """Fails the run when barnabas logs an error."""
        handler = _ErrorHandler(self)
        logger = logging.getLogger("barnabas")
        propagates, logger.propagate = logger.propagate, False
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.propagate = propagates

    def trace(self) -> list[str]:
        return [f"{(at_ms - START_MS) / 1000:9.3f} {event}" for at_ms, event in self._trace]


@dataclass(slots=True, frozen=True)
class Note:
    """A line for the trace."""

    subject: str
    text: str

    @property
    def digest_key(self) -> str:
        return f"{self.subject} {self.text}"

    def __str__(self) -> str:
        return f"{self.subject:<12} {self.text}"


class _ErrorHandler(logging.Handler):
    def __init__(self, events: Events) -> None:
        super().__init__(logging.ERROR)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        if not isinstance(cause, Killed):
            violation = Violation(f"the broker logged: {record.getMessage()}")
            violation.__cause__ = cause
            self._events.fail(violation, "Log")
