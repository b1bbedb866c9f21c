"""How whatever runs in the foreground is told to stop."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable


def told_to_stop(abort: Callable[[], None], *, with_stdin: bool = False) -> asyncio.Event:
    """Set by the first SIGTERM or Ctrl-C; the second one calls `abort`.

    The end of standard input stops it too, if asked: for who is run by another process, which
    may die.
    """
    stop = asyncio.Event()

    def stop_or_abort() -> None:
        if stop.is_set():
            abort()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_abort)
    if with_stdin:
        loop.add_reader(sys.stdin, _look_for_the_end_of_stdin, stop)
    return stop


def _look_for_the_end_of_stdin(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()
