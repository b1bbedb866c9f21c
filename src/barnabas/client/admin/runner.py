"""Runs the calls of an `AioAdminClient` on the shared loop thread, and returns futures.

The futures cannot be cancelled, like `confluent_kafka`'s: the request has been sent.
"""

import asyncio
import concurrent.futures
import queue
import weakref
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.results import Results
from barnabas.client.errors import KafkaError, KafkaException, fail
from barnabas.client.loop_thread import LoopThread
from barnabas.client.settings import AdminSettings

K = TypeVar("K")
V = TypeVar("V")

MAX_QUEUED_ERRORS = 1000
"""Errors that wait for `poll`; later ones are dropped."""

CLOSE_TIMEOUT_S = 10.0


class AdminRunner:
    """An `AioAdminClient` on the loop that all clients without an own loop share."""

    def __init__(self, settings: AdminSettings) -> None:
        self.errors = ErrorQueue(settings.error_cb)
        self.thread = LoopThread.shared()
        self.admin = self.thread.run(_open(settings, self.errors))
        self._finalize = weakref.finalize(self, _close, self.thread, self.admin)

    def close(self) -> None:
        closed = self._finalize()
        if closed is not None:
            closed.result(CLOSE_TIMEOUT_S)

    def run(self, call: Coroutine[Any, Any, V]) -> V:
        """Waits for a call and returns its value."""
        return self.thread.run(self._require_open(call))

    def future(self, call: Coroutine[Any, Any, V]) -> Future[V]:
        """Starts a call and returns the future of its value."""
        future: Future[V] = _running()
        self._start(call).add_done_callback(
            lambda done: _complete(done, future.set_result, future.set_exception)
        )
        return future

    def futures(
        self, keys: Iterable[K], call: Coroutine[Any, Any, Results[K, V]]
    ) -> dict[K, Future[V]]:
        """Starts a call about several items and returns a future for each item."""
        futures: dict[K, Future[V]] = {key: _running() for key in keys}

        def succeeded(results: Results[K, V]) -> None:
            for key, future in futures.items():
                try:
                    future.set_result(results[key])
                except Exception as failure:
                    future.set_exception(failure)

        def failed(failure: BaseException) -> None:
            for future in futures.values():
                future.set_exception(failure)

        self._start(call).add_done_callback(lambda done: _complete(done, succeeded, failed))
        return futures

    def _start(self, call: Coroutine[Any, Any, V]) -> Future[V]:
        """A caller may keep nothing but the future: until it is done it keeps this runner open."""
        started = self.thread.submit(self._require_open(call))
        references = [self]
        started.add_done_callback(lambda _: references.clear())
        return started

    def _require_open(self, call: Coroutine[Any, Any, V]) -> Coroutine[Any, Any, V]:
        if not self._finalize.alive:
            call.close()
            fail(KafkaError._DESTROY, "the client was closed")
        return call


class ErrorQueue:
    """Connection errors on their way from the loop thread to `error_cb` in the user's."""

    def __init__(self, error_cb: Callable[[KafkaError], None] | None) -> None:
        self._error_cb = error_cb
        self._errors: queue.Queue[KafkaError] = queue.Queue(MAX_QUEUED_ERRORS)

    def __len__(self) -> int:
        return self._errors.qsize()

    def put(self, error: KafkaError) -> None:
        if self._error_cb is not None and not self._errors.full():
            self._errors.put_nowait(error)

    def serve(self, timeout_s: float) -> int:
        """Calls `error_cb` for every error, and returns how often."""
        served = 0
        try:
            error = self._errors.get(timeout=None if timeout_s < 0 else timeout_s)
            while True:
                served += 1
                if self._error_cb is not None:
                    self._error_cb(error)
                error = self._errors.get_nowait()
        except queue.Empty:
            return served


async def _open(settings: AdminSettings, errors: ErrorQueue) -> AioAdminClient:
    return AioAdminClient(settings, errors.put)


def _close(thread: LoopThread, admin: AioAdminClient) -> Future[None]:
    """Does not wait: the garbage collector may call it in the thread of the loop itself."""
    closed = thread.submit(admin.close())
    closed.add_done_callback(lambda _: thread.release())
    return closed


def _complete(
    call: "Future[V]", succeeded: Callable[[V], None], failed: Callable[[BaseException], None]
) -> None:
    try:
        value = call.result()
    except (asyncio.CancelledError, concurrent.futures.CancelledError):
        failed(KafkaException(KafkaError(KafkaError._DESTROY, "the admin client was closed")))
    except Exception as failure:
        failed(failure)
    else:
        succeeded(value)


def _running() -> Future[V]:
    future: Future[V] = Future()
    future.set_running_or_notify_cancel()
    return future
