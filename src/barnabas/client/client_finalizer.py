"""Ends clients that the user does not close: dropped ones, and those open at the process's end."""

import atexit
import concurrent.futures
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from barnabas.client.loop_thread import LoopThread

EXIT_TIMEOUT_S = 5.0
"""How long the end of the process waits for open clients: consumers leave their groups."""

Release = Callable[[], "concurrent.futures.Future[Any] | None"]


class ClientFinalizer:
    """Calls `release` once, when its client is dropped or the process ends.

    `release` must not refer to the client. It must not wait either, because the garbage collector
    may call it in any thread. It returns what the end of the process has to wait for.
    """

    _open: ClassVar[set["ClientFinalizer"]] = set()
    _is_registered: ClassVar[bool] = False
    """Whether multiprocessing runs `run_at_exit`: its child processes do not run atexit."""

    def __init__(self, client: object, release: Release) -> None:
        self._release = release
        self._finalize = weakref.finalize(client, self._run)
        self._finalize.atexit = False  # `run_at_exit` does it, and waits
        self._open.add(self)
        self._register_in_child()

    def detach(self) -> None:
        """The client was closed: nothing is left to release."""
        self._open.discard(self)
        self._finalize.detach()

    def _run(self) -> "concurrent.futures.Future[Any] | None":
        self.detach()
        return self._release()

    @classmethod
    def run_at_exit(cls) -> None:
        """Releases every open client, and waits until that is done."""
        released = [finalizer._run() for finalizer in list(cls._open)]
        waiting = [future for future in released if future is not None]
        concurrent.futures.wait(waiting, EXIT_TIMEOUT_S)
        LoopThread.join_ending(EXIT_TIMEOUT_S)

    @classmethod
    def after_fork(cls) -> None:
        """The open clients stay with the parent process."""
        cls._is_registered = False
        for finalizer in list(cls._open):
            finalizer.detach()

    @classmethod
    def _register_in_child(cls) -> None:
        multiprocessing = sys.modules.get("multiprocessing")  # every child process has loaded it
        if cls._is_registered or multiprocessing is None or not multiprocessing.parent_process():
            return
        cls._is_registered = True
        multiprocessing.util.Finalize(None, cls.run_at_exit, exitpriority=0)


atexit.register(ClientFinalizer.run_at_exit)
os.register_at_fork(after_in_child=ClientFinalizer.after_fork)
