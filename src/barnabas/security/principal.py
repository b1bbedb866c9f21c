"""The identity of a client, as authentication has established it."""

from typing import NamedTuple

USER = "User"


class KafkaPrincipal(NamedTuple):
    """The authenticated identity of a client."""

    type: str
    name: str
    token_authenticated: bool = False
    """Whether the client logged in with a delegation token."""

    @classmethod
    def parse(cls, text: str) -> "KafkaPrincipal":
        """Parses `Type:name`. Raises ValueError if it is malformed."""
        kind, colon, name = text.partition(":")
        if not colon or not kind:
            raise ValueError(f"{text} is not of the form Type:name, such as User:alice")
        return cls(kind, name)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""A client that did not authenticate."""
