"""An answer that may come later, without a loop to wait on.

The state machines of this room complete answers; whoever asked hears of it through `then`, or
awaits the answer where there is a loop. An answer that is there already costs neither.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from barnabas.wire.errors import KafkaError

T = TypeVar("T")
U = TypeVar("U")


class PendingResponse(Generic[T]):
    """What somebody will be told, once: a value or an error."""

    __slots__ = ("_error", "_listeners", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._listeners: tuple[Callable[[PendingResponse[T]], None], ...] = ()  # seldom more than one

    @staticmethod
    def completed(value: U) -> "PendingResponse[U]":
        """An answer that is there."""
        answer: PendingResponse[U] = PendingResponse()
        answer.is_done = True
        answer._value = value
        return answer

    @staticmethod
    def failed(error: Exception) -> "PendingResponse[Any]":
        answer: PendingResponse[Any] = PendingResponse()
        answer.is_done = True
        answer._error = error
        return answer

    def complete(self, value: T) -> None:
        self._value = value
        self._finish()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._finish()

    def result(self) -> T:
        """The value; raises the error if it is one."""
        assert self.is_done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    @property
    def error(self) -> Exception | None:
        """Why there is no value; None if there is one, or nothing yet."""
        return self._error

    def when_done(self, listener: "Callable[[PendingResponse[T]], None]") -> None:
        """Call `listener` with this answer once it is done: now, if it is."""
        if self.is_done:
            listener(self)
        else:
            self._listeners += (listener,)

    def map(self, transform: Callable[[T], U]) -> "PendingResponse[U]":
        """The answer with its value made into another; an error stays what it is."""
        mapped: PendingResponse[U] = PendingResponse()
        self.when_done(lambda answer: mapped.complete_with(lambda: transform(answer.result())))
        return mapped

    def chain(self, step: "Callable[[T], PendingResponse[U]]") -> "PendingResponse[U]":
        """The answer to what is asked next with this value; an error stays what it is."""
        chained: PendingResponse[U] = PendingResponse()

        def go_on(answer: "PendingResponse[T]") -> None:
            if answer.error is not None:
                chained.fail(answer.error)
            else:
                step(answer.result()).when_done(lambda last: chained.complete_with(last.result))

        self.when_done(go_on)
        return chained

    def recover(self, refused: Callable[[KafkaError], T]) -> "PendingResponse[T]":
        """The answer with an error of the protocol made into a value; other errors stay."""
        if self.is_done and self._error is None:
            return self
        recovered: PendingResponse[T] = PendingResponse()

        def go_on(answer: "PendingResponse[T]") -> None:
            error = answer.error
            if isinstance(error, KafkaError):
                recovered.complete(refused(error))
            else:
                recovered.complete_with(answer.result)

        self.when_done(go_on)
        return recovered

    def complete_with(self, work: Callable[[], T]) -> None:
        """Complete with what `work` returns, or fail with what it raises."""
        try:
            value = work()
        except Exception as error:
            self.fail(error)
        else:
            self.complete(value)

    def __await__(self) -> Generator[Any, None, T]:
        if not self.is_done:
            future = asyncio.get_running_loop().create_future()
            self.when_done(lambda _: _wake(future))
            yield from future
        return self.result()

    def _finish(self) -> None:
        assert not self.is_done, "an answer is given once"
        self.is_done = True
        listeners, self._listeners = self._listeners, ()
        for listener in listeners:
            listener(self)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def all_of(answers: Sequence[PendingResponse[T]]) -> PendingResponse[list[T]]:
    """All values in order, once the last is there; the first error, if there is one."""
    gathered: PendingResponse[list[T]] = PendingResponse()
    missing = len(answers)

    def count(_: PendingResponse[T]) -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            gathered.complete_with(lambda: [answer.result() for answer in answers])

    if not answers:
        return PendingResponse.completed([])
    for answer in answers:
        answer.when_done(count)
    return gathered
