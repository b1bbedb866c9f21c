"""Loopback ports that stay reserved for a process that is restarted."""

import contextlib
import errno
import random
import socket
from collections import deque

LOOPBACK = "127.0.0.1"

PORTS = range(20_000, 32_000, 2)
"""Outside the kernel's range of ephemeral ports."""

_reserved: deque[socket.socket] = deque(maxlen=256)
"""Sockets bound to the latest ports: a server can listen there, but the ports are not free."""


def free_port() -> int:
    """Returns a port that is free together with the next one. Later calls return others."""
    for port in random.SystemRandom().sample(PORTS, 100):
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            pair = [probes.enter_context(_bind(number)) for number in (port, port + 1)]
            probes.pop_all()
            _reserved.extend(pair)
            return port
    raise OSError(errno.EADDRINUSE, f"no free port in {PORTS}")


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
