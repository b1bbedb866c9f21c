"""Other nodes, as those see them who send them requests."""

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.wire.schema import Message

Answered = Callable[[Any], None]
"""Given the response, or the OSError that says why there is none.

ConnectionRefusedError: nobody listens there. Another ConnectionError: it went away, or what it
sent makes no sense. TimeoutError: no answer came in time.
"""


class Peer(Protocol):
    """A connection to another node, opened when it is first needed and again after it broke."""

    def send(self, request: Message, timeout_ms: int, answered: Answered) -> None:
        """Ask it, in the newest version that both know; it answers in the order it was asked.

        `answered` is called once, on the loop, and never before `send` has returned. What a
        response holds of records is gone when `answered` returns.
        """

    def close(self) -> None:
        """Hang up; whoever still waits is told that the connection broke."""


class Peers(Protocol):
    """Finds the connection to an address."""

    def at(self, host: str, port: int, purpose: str) -> Peer:
        """The connection for one purpose: what waits for long must not hold up the rest."""
