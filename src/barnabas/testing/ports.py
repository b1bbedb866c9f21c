"""Ports of loopback that stay free for a process that dies and comes back."""

import contextlib
import errno
import random
import socket

LOOPBACK = "127.0.0.1"

PORTS = range(20_000, 32_000, 2)
"""Outside the range that the kernel gives to outgoing connections."""


def free_port() -> int:
    """A port that is free, and so is the next one."""
    for port in random.SystemRandom().sample(PORTS, 100):
        if _is_free(port) and _is_free(port + 1):
            return port
    raise OSError(errno.EADDRINUSE, f"no free port in {PORTS}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind((LOOPBACK, port))
        return True
    return False
