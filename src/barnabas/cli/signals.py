"""Stopping a command in the foreground: by a signal, a closed output or a closed input."""

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    import asyncio


def stop_event(abort: Callable[[], None], *, with_stdin: bool = False) -> "asyncio.Event":
    """Returns an event that the first SIGTERM or Ctrl-C sets; the second one calls `abort`.

    A closed terminal (SIGHUP) sets it too, unless `nohup` ignores that. It never aborts: the shell
    and the kernel each send one. With `with_stdin`, the end of standard input sets it as well, so
    that a child process stops when its parent is killed.
    """
    import asyncio

    stop = asyncio.Event()

    def stop_or_abort() -> None:
        if stop.is_set():
            abort()
        stop.set()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop_or_abort)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, stop.set)
    if with_stdin:
        loop.add_reader(sys.stdin, _read_stdin, stop)
    return stop


def _read_stdin(stop: "asyncio.Event") -> None:
    import asyncio

    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()


class Terminated(KeyboardInterrupt):
    """Raised by SIGTERM, and handled like Ctrl-C."""


@contextmanager
def exit_on_signal() -> Iterator[None]:
    """Exits cleanly on Ctrl-C, SIGTERM or a closed output, with the status Unix has for it.

    The body is interrupted by an exception, so that it can close its resources.
    """

    def terminate(*_: Any) -> NoReturn:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        try:
            yield
        finally:
            # Here, because an error of the flush at the interpreter's exit cannot be handled.
            sys.stdout.flush()
    except Terminated:
        sys.exit(128 + signal.SIGTERM)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except BrokenPipeError:
        _discard_output()
    finally:
        signal.signal(signal.SIGTERM, before)


def open_standard_streams() -> None:
    """Replaces standard streams that the parent has closed (`<&-`, `>&-`) by the null device.

    Otherwise a socket or file could get the descriptor of one.
    """
    for name, flags in ("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY):
        if getattr(sys, name) is None:
            mode = "r" if flags == os.O_RDONLY else "w"
            setattr(sys, name, open(os.open(os.devnull, flags), mode))  # noqa: SIM115, PTH123


def raise_if_output_closed() -> None:
    """Raises BrokenPipeError if the reader of standard output is gone.

    A write would raise it as well, but a consumer of an idle topic writes nothing.
    """
    try:
        output = sys.stdout.fileno()
    except OSError:  # standard output is not a file
        return
    poll = select.poll()
    poll.register(output, 0)
    if any(events & select.POLLERR for _, events in poll.poll(0)):
        raise BrokenPipeError


def _discard_output() -> None:
    """Redirects standard output, so that the interpreter can flush it at exit after `| head -1`."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
