"""What the SASL mechanisms of a server have in common."""

from dataclasses import dataclass
from typing import Protocol

from barnabas.security.principal import KafkaPrincipal

_MAX_QUOTED_CHARACTERS = 100


@dataclass(slots=True, frozen=True)
class Login:
    """The result of an exchange."""

    principal: KafkaPrincipal
    expires_ms: int | None = None  # when the credential expires, by the wall clock


class ServerExchange(Protocol):
    """One authentication of one client.

    It does no I/O. A step that would take more than a millisecond runs in a thread, which
    `evaluate` awaits.
    """

    @property
    def login(self) -> Login | None:
        """The result, once the exchange is complete."""

    async def evaluate(self, message: bytes) -> bytes:
        """Returns the response to the client's next message. Raises LoginFailed."""


class LoginFailed(Exception):  # noqa: N818 - what happened
    """The client is not authenticated.

    `message` is sent to the client, so it must not say whether a user exists. `reason` is for the
    log, and may. Some mechanisms have a `response` of their own: the client gets it, and the
    failure only after its next message.
    """

    def __init__(
        self, message: str, reason: str | None = None, *, response: bytes | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or message
        self.response = response


class ConnectionAborted(LoginFailed):
    """The client is disconnected without a response: it should try again."""


def quoted(text: str) -> str:
    """Returns a client's text as it may appear in a log line: on one line and not too long."""
    if len(text) > _MAX_QUOTED_CHARACTERS:
        text = text[:_MAX_QUOTED_CHARACTERS] + "..."
    return ascii(text)
