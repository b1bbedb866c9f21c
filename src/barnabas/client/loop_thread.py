"""The thread on whose event loop the cores of all plain clients of a process live."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.client.errors import KafkaError, fail

T = TypeVar("T")


class LoopThread:
    """A loop that runs in a daemon thread, from its first user to its last."""

    _shared: "LoopThread | None" = None
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._users = 0
        self.is_in_forked_child = False  # in the parent process, by a fork
        self._thread = threading.Thread(target=self._live, name="barnabas-clients", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> "LoopThread":
        """The process's one, which the caller is now a user of: `release` ends that."""
        with cls._lock:
            thread = cls._shared
            if thread is None:
                thread = cls._shared = cls()
            thread._users += 1
            return thread

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """What a coroutine returns; KafkaException _TIMED_OUT if it takes longer than that.

        A signal, such as Ctrl-C's, interrupts the wait; the coroutine is cancelled then too.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            fail(KafkaError._STATE, "a plain client must not be called from the clients' own loop")
        future = self.submit(coroutine)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise  # the coroutine's own
            fail(KafkaError._TIMED_OUT, f"not done within {timeout_s} s")
        finally:
            future.cancel()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Start a coroutine on the loop."""
        if self.is_in_forked_child:
            coroutine.close()
        self.check_not_forked()
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call a function on the loop, soon."""
        self.check_not_forked()
        self.loop.call_soon_threadsafe(function, *arguments)

    def check_not_forked(self) -> None:
        """KafkaException if this is another process than the one that the clients live in."""
        if self.is_in_forked_child:
            made_before = "the client was made before this process was forked: make one here"
            fail(KafkaError._STATE, made_before)

    def release(self) -> None:
        """The caller needs it no more; the last one ends the thread."""
        if self.is_in_forked_child:
            return
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if LoopThread._shared is self:
                LoopThread._shared = None
        self.call(self.loop.stop)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _live(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self._wind_up())
        finally:
            self.loop.close()

    async def _wind_up(self) -> None:
        """Cancel what still runs, so that nobody waits for it for ever."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.loop.shutdown_default_executor()

    @classmethod
    def _forked(cls) -> None:
        """The thread has stayed behind in the parent; the child begins anew."""
        if cls._shared is not None:
            cls._shared.is_in_forked_child = True
        cls._shared = None
        cls._lock = threading.Lock()


os.register_at_fork(after_in_child=LoopThread._forked)
