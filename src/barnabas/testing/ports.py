"""Loopback ports that stay reserved for a process that is restarted."""

import atexit
import contextlib
import errno
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"

PORTS = range(20_000, 32_000, 2)
"""Outside the kernel's range of ephemeral ports."""

MAX_RESERVED = 128

_reserved: deque[contextlib.ExitStack] = deque()
"""Sockets bound to the latest ports: a server can listen there, but the ports are not free."""


def free_port() -> int:
    """Returns a port that is free together with the next one.

    It stays reserved, also when its server is closed: a client that was not closed must not reach
    the server of another test. The next ports that are returned are others.
    """
    for port in random.SystemRandom().sample(PORTS, 100):
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for number in port, port + 1:
                probes.enter_context(_bind(number))
            _reserved.append(probes.pop_all())
            _release(MAX_RESERVED)
            return port
    raise OSError(errno.EADDRINUSE, f"no free port in {PORTS}")


def _release(kept: int) -> None:
    """Closes the sockets of all but the latest ports."""
    while len(_reserved) > kept:
        _reserved.popleft().close()


atexit.register(_release, 0)


def _bind(port: int) -> socket.socket:
    probe = socket.socket()
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        probe.close()
        raise
    # From now on a server that sets SO_REUSEADDR, as all do, can bind it too.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe
