"""Free ports of this machine. All functions raise CommandError if the host is another machine."""

from collections.abc import Collection

from barnabas.cli.operations.errors import CommandError
from barnabas.net.listening_sockets import is_port_free, require_free_port

HIGHEST_PORT = 65535

_SUGGESTION_STEP = 100
"""9192 is suggested instead of 9092: the ports right after it are often taken as well."""


def is_free(host: str, port: int) -> bool:
    try:
        return is_port_free(host, port)
    except OSError as error:
        raise CommandError(f"Cannot listen on {host}: {error.strerror}.") from None


def any_free_port(host: str, reserved: Collection[int] = ()) -> int:
    """Returns a port that is free now and not reserved, of those that the system hands out."""
    port = 0
    while not port or port in reserved:
        try:
            port = require_free_port(host, 0)
        except OSError as error:
            raise CommandError(f"Cannot listen on {host}: {error.strerror}.") from None
    return port


def next_free_port(host: str, first: int, reserved: Collection[int] = ()) -> int:
    """Returns the first free port from `first` on that is not reserved."""
    for port in range(first, HIGHEST_PORT + 1):
        if port not in reserved and is_free(host, port):
            return port
    return any_free_port(host)


def suggest_port(host: str, taken: int) -> int:
    """Returns a free port to use instead of a taken one, which is easy to remember."""
    for port in range(taken + _SUGGESTION_STEP, HIGHEST_PORT, _SUGGESTION_STEP):
        if is_free(host, port):
            return port
    return any_free_port(host)
