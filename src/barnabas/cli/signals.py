"""How whatever runs in the foreground is told to stop."""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


def stop_event(abort: Callable[[], None], *, with_stdin: bool = False) -> asyncio.Event:
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


class Terminated(KeyboardInterrupt):
    """SIGTERM, which ends what Ctrl-C ends."""


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """What is inside is interrupted by Ctrl-C, SIGTERM, or the end of whoever reads the output.

    It closes what it opened, and then the command ends.
    """

    def terminate(*_: Any) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
        sys.stdout.flush()
    except Terminated:
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        _forget_the_output()
    finally:
        signal.signal(signal.SIGTERM, before)


def raise_if_output_closed() -> None:
    """Raise BrokenPipeError where nobody reads the output any more.

    Writing would raise it as well; but who waits for records on a quiet topic writes nothing.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # not a file, so there is no reader to lose
        return
    poll = select.poll()
    poll.register(output, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError


def _forget_the_output() -> None:
    """`| head -1` has seen enough; or else the interpreter would complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
