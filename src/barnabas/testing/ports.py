"""Ports of loopback that stay free for a process that dies and comes back."""

import contextlib
import errno
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"

PORTS = range(20_000, 32_000, 2)
"""Outside the range that the kernel gives to outgoing connections."""

_held: deque[socket.socket] = deque(maxlen=256)
"""The latest ports given out, bound: a server may listen there, nobody else finds them free."""


def free_port() -> int:
    """A port that is free, and so is the next one; whoever asks later gets others."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            pair = [probes.enter_context(_bound(number)) for number in (port, port + 1)]
            probes.pop_all()
            _held.extend(pair)
            return port
    raise OSError(errno.EADDRINUSE, f"no free port in {PORTS}")


def _bound(port: int) -> socket.socket:
    probe = socket.socket()
    try:
        probe.bind((LOOPBACK, port))
    except OSError:
        probe.close()
        raise
    # From now on: a server that says so as well, as all do, may bind it too.
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe
