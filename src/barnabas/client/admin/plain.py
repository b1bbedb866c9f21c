"""How a client without a loop of its own lives on the one that all such clients share."""

import queue
import weakref
from collections.abc import Coroutine, Iterable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.calls import UNSET, Results
from barnabas.client.admin.futures import future_each, one_future
from barnabas.client.errors import KafkaError, fail
from barnabas.client.loop_thread import LoopThread
from barnabas.client.settings import AdminSettings, admin_settings

K = TypeVar("K")
V = TypeVar("V")

MOST_ERRORS = 1000
"""That wait for `poll`; those after them are not told."""

CLOSE_S = 10.0


class PlainClient:
    """Opens and closes an `AioAdminClient` on that loop, and hands calls to it."""

    def __init__(self, conf: dict[str, Any], **kwargs: Any) -> None:
        if not isinstance(conf, dict):
            raise TypeError("expected configuration dict")
        settings = admin_settings(conf | kwargs)
        self._error_cb = settings.error_cb
        self._told: queue.Queue[KafkaError] = queue.Queue(MOST_ERRORS)
        self._thread = LoopThread.shared()
        self._core = self._thread.run(_begin(settings, self._told))
        self._finalize = weakref.finalize(self, _end, self._thread, self._core)

    def close(self) -> None:
        """Hang up; futures that are not done fail.

        Happens by itself when nobody needs the client and no call is under way.
        """
        ended = self._finalize()
        if ended is not None:
            ended.result(CLOSE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return self._told.qsize()

    def poll(self, timeout: float = UNSET) -> int:
        """Have `error_cb` called for what has gone wrong; how many times it was."""
        served = 0
        try:
            error = self._told.get(timeout=None if timeout < 0 else timeout)
            while True:
                served += 1
                if self._error_cb is not None:
                    self._error_cb(error)
                error = self._told.get_nowait()
        except queue.Empty:
            return served

    def _now(self, call: Coroutine[Any, Any, V]) -> V:
        return self._thread.run(self._open(call))

    def _one(self, call: Coroutine[Any, Any, V]) -> "Future[V]":
        return one_future(self._start(call))

    def _each(
        self, keys: Iterable[K], call: Coroutine[Any, Any, Results[K, V]]
    ) -> "dict[K, Future[V]]":
        return future_each(keys, self._start(call))

    def _start(self, call: Coroutine[Any, Any, V]) -> "Future[V]":
        """Whoever called may keep nothing but the future: the call keeps the client, until done."""
        started = self._thread.submit(self._open(call))
        kept = [self]
        started.add_done_callback(lambda _: kept.clear())
        return started

    def _open(self, call: Coroutine[Any, Any, V]) -> Coroutine[Any, Any, V]:
        if not self._finalize.alive:
            call.close()
            fail(KafkaError._DESTROY, "the client was closed")
        return call


async def _begin(settings: AdminSettings, told: "queue.Queue[KafkaError]") -> AioAdminClient:
    def tell(error: KafkaError) -> None:
        if settings.error_cb is not None and not told.full():
            told.put_nowait(error)

    return AioAdminClient(settings, tell)


def _end(thread: LoopThread, core: AioAdminClient) -> "Future[None]":
    """Does not wait: it may be the loop's own thread that finds that nobody needs the client."""
    ended = thread.submit(core.close())
    ended.add_done_callback(lambda _: thread.release())
    return ended
