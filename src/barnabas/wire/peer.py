"""Connections to other nodes, as their users see them."""

from collections.abc import Callable
from typing import Any, Protocol

from barnabas.wire.schema import Message

ResponseCallback = Callable[[Any], None]
"""Called with the response, or with the OSError that says why there is none.

ConnectionRefusedError: the peer does not listen. Another ConnectionError: the connection broke,
or the peer violated the protocol. TimeoutError: no response arrived in time.
"""


class Peer(Protocol):
    """A connection to another node, opened when it is first needed and again after it broke."""

    def send(self, request: Message, timeout_ms: int, on_response: ResponseCallback) -> None:
        """Sends a request in the newest version that both sides support.

        Responses arrive in the order of the requests. `on_response` is called once, on the loop,
        and never before `send` has returned. Records in a response are only valid until
        `on_response` returns.
        """

    def close(self) -> None:
        """Closes the connection; requests in flight fail with a ConnectionError."""


class Peers(Protocol):
    """Finds the connection to an address."""

    def at(self, host: str, port: int, purpose: str) -> Peer:
        """Returns the connection for one purpose: long waits must not delay other requests."""
