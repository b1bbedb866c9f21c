"""The thread with the event loop of all plain clients of a process."""

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.client.errors import KafkaError, fail

T = TypeVar("T")


class LoopThread:
    """An event loop in a daemon thread, from its first user to its last."""

    _shared: "LoopThread | None" = None
    _ending: "LoopThread | None" = None
    """The last one that was released on its own thread, which could not wait for its end."""
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._users = 0
        self.is_in_forked_child = False  # the thread stayed in the parent process
        self._thread = threading.Thread(target=self._run_loop, name="barnabas-clients", daemon=True)
        self._thread.start()

    @classmethod
    def shared(cls) -> "LoopThread":
        """Returns the thread of the process. The caller must `release` it."""
        with cls._lock:
            thread = cls._shared
            if thread is None:
                thread = cls._shared = cls()
            thread._users += 1
            return thread

    def run(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Runs a coroutine and returns its result. Raises KafkaException _TIMED_OUT in time.

        A signal, such as Ctrl-C, interrupts the wait; the coroutine is cancelled then too.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            fail(KafkaError._STATE, "a plain client must not be called from the clients' own loop")
        future = self.submit(coroutine)
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError:
            if future.done():
                raise  # by the coroutine itself
            fail(KafkaError._TIMED_OUT, f"not done within {timeout_s} s")
        finally:
            future.cancel()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Starts a coroutine on the loop."""
        if self.is_in_forked_child:
            coroutine.close()
        self.check_not_forked()
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    def close_client(self, closing: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Closes a client of the thread, which releases it then. Does not wait."""

        async def close() -> T:
            try:
                return await closing
            finally:
                self.release()

        return self.submit(close())

    def call(self, function: Callable[..., object], *arguments: Any) -> None:
        """Calls a function on the loop, soon."""
        self.check_not_forked()
        self.loop.call_soon_threadsafe(function, *arguments)

    def check_not_forked(self) -> None:
        """Raises KafkaException if the client was created before this process was forked."""
        if self.is_in_forked_child:
            reason = "the client was created before this process was forked: create one here"
            fail(KafkaError._STATE, reason)

    def release(self) -> None:
        """Ends the use by the caller; the last release ends the thread."""
        if self.is_in_forked_child:
            return
        with self._lock:
            self._users -= 1
            if self._users:
                return
            if LoopThread._shared is self:
                LoopThread._shared = None
        self.call(self.loop.stop)
        if threading.current_thread() is self._thread:
            LoopThread._ending = self
        else:
            self._thread.join()

    @classmethod
    def join_ending(cls, timeout_s: float) -> None:
        """Waits until a thread without users has ended.

        It must not run on while the interpreter ends: it could still start a thread, which crashes.
        """
        if cls._ending is not None:
            cls._ending._thread.join(timeout_s)

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self._cancel_tasks())
        finally:
            self.loop.close()

    async def _cancel_tasks(self) -> None:
        """Cancels what still runs, so that no thread waits for it for ever."""
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await self.loop.shutdown_default_executor()

    @classmethod
    def _after_fork(cls) -> None:
        """The thread stays in the parent process; the child starts without one."""
        if cls._shared is not None:
            cls._shared.is_in_forked_child = True
        cls._shared = cls._ending = None
        cls._lock = threading.Lock()


os.register_at_fork(after_in_child=LoopThread._after_fork)
