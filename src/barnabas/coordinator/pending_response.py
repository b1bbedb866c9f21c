"""A response that may come later, without an event loop to wait on.

State machines complete responses. The caller registers a callback with `when_done`, or awaits the
response where there is an event loop. A response that is complete from the start costs neither.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from barnabas.wire.errors import KafkaError

T = TypeVar("T")
U = TypeVar("U")


class PendingResponse(Generic[T]):
    """A value or an error, set once."""

    __slots__ = ("_callbacks", "_error", "_value", "is_done")

    def __init__(self) -> None:
        self.is_done = False
        self._value: T | None = None
        self._error: Exception | None = None
        self._callbacks: tuple[Callable[[PendingResponse[T]], None], ...] = ()  # mostly one

    @staticmethod
    def completed(value: U) -> "PendingResponse[U]":
        response: PendingResponse[U] = PendingResponse()
        response.is_done = True
        response._value = value
        return response

    @staticmethod
    def failed(error: Exception) -> "PendingResponse[Any]":
        response: PendingResponse[Any] = PendingResponse()
        response.is_done = True
        response._error = error
        return response

    def complete(self, value: T) -> None:
        self._value = value
        self._finish()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._finish()

    def result(self) -> T:
        """Returns the value, or raises the error."""
        assert self.is_done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    @property
    def error(self) -> Exception | None:
        """The error; None if there is a value, or nothing yet."""
        return self._error

    def when_done(self, callback: "Callable[[PendingResponse[T]], None]") -> None:
        """Calls `callback` with this response once it is done: at once, if it is."""
        if self.is_done:
            callback(self)
        else:
            self._callbacks += (callback,)

    def map(self, transform: Callable[[T], U]) -> "PendingResponse[U]":
        """Returns the response with its value transformed. An error stays as it is."""
        mapped: PendingResponse[U] = PendingResponse()
        self.when_done(lambda response: mapped.complete_with(lambda: transform(response.result())))
        return mapped

    def chain(self, step: "Callable[[T], PendingResponse[U]]") -> "PendingResponse[U]":
        """Returns the response of `step`, which is called with the value of this one. An error
        stays as it is, and `step` is not called."""
        chained: PendingResponse[U] = PendingResponse()

        def on_done(response: "PendingResponse[T]") -> None:
            if response.error is not None:
                chained.fail(response.error)
            else:
                step(response.result()).when_done(lambda last: chained.complete_with(last.result))

        self.when_done(on_done)
        return chained

    def recover(self, to_value: Callable[[KafkaError], T]) -> "PendingResponse[T]":
        """Returns the response with a KafkaError turned into a value. Other errors stay."""
        if self.is_done and self._error is None:
            return self
        recovered: PendingResponse[T] = PendingResponse()

        def on_done(response: "PendingResponse[T]") -> None:
            error = response.error
            if isinstance(error, KafkaError):
                recovered.complete(to_value(error))
            else:
                recovered.complete_with(response.result)

        self.when_done(on_done)
        return recovered

    def complete_with(self, work: Callable[[], T]) -> None:
        """Completes with what `work` returns, or fails with what it raises."""
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
        assert not self.is_done, "a response is completed once"
        self.is_done = True
        callbacks, self._callbacks = self._callbacks, ()
        for callback in callbacks:
            callback(self)


def _wake(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def all_of(responses: Sequence[PendingResponse[T]]) -> PendingResponse[list[T]]:
    """Returns all values in order once the last one is there, or the first error."""
    gathered: PendingResponse[list[T]] = PendingResponse()
    missing = len(responses)

    def on_done(_: PendingResponse[T]) -> None:
        nonlocal missing
        missing -= 1
        if not missing:
            gathered.complete_with(lambda: [response.result() for response in responses])

    if not responses:
        return PendingResponse.completed([])
    for response in responses:
        response.when_done(on_done)
    return gathered
