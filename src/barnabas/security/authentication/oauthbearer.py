"""OAUTHBEARER (RFC 7628): the client sends a token, which a validator checks.

A token that is not valid is answered with a JSON object. The client acknowledges that with one
byte, and then gets the failure.
"""

import json
import re
from dataclasses import dataclass
from typing import Protocol

from barnabas.security.authentication.exchange import Login, LoginFailed
from barnabas.security.principal import USER, KafkaPrincipal

INVALID_TOKEN = "invalid_token"
INSUFFICIENT_SCOPE = "insufficient_scope"

_MAX_MESSAGE_BYTES = 65_536
_MAX_EXTENSIONS = 100
"""More take milliseconds of the event loop, and the client is not authenticated yet."""

_MESSAGE = re.compile(
    r"n,(?:a=(?P<authzid>[^,\x01]*))?,\x01(?P<pairs>(?:[^\x01]+\x01)+)\x01", re.DOTALL
)
_PAIR = re.compile(r"(?P<name>[A-Za-z]+)=(?P<value>[\x21-\x7e \t\r\n]*)")
_BEARER = re.compile(r"bearer (?P<token>[A-Za-z0-9._~+/-]+=*)", re.IGNORECASE)


@dataclass(slots=True, frozen=True)
class ValidToken:
    """What is known about a token that is valid."""

    principal_name: str
    expires_ms: int


class InvalidToken(Exception):  # noqa: N818 - what the RFC calls it
    """A token that is not accepted. `status` and `scope` are for the client."""

    def __init__(self, reason: str, status: str = INVALID_TOKEN, scope: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class TokenValidator(Protocol):
    """Checks the tokens of clients."""

    def validate(self, token: str) -> ValidToken:
        """Raises InvalidToken."""


class OAuthBearerExchange:
    """One message with the token."""

    def __init__(self, validator: TokenValidator) -> None:
        self._validator = validator
        self._is_started = False
        self.login: Login | None = None

    async def evaluate(self, message: bytes) -> bytes:
        if self._is_started:
            raise _malformed("a message after the token")
        self._is_started = True
        authorization_id, token = _parse(message)
        try:
            valid = self._validator.validate(token)
        except InvalidToken as invalid:
            error = {"status": invalid.status} | ({"scope": invalid.scope} if invalid.scope else {})
            text = json.dumps(error, separators=(",", ":"))
            reason = f"the token is not valid: {invalid}"
            raise LoginFailed(text, reason, response=text.encode()) from None
        if authorization_id not in ("", valid.principal_name):
            raise LoginFailed(
                "Authentication failed: the authorization id must be empty or the principal of "
                "the token.",
            )
        self.login = Login(KafkaPrincipal(USER, valid.principal_name), valid.expires_ms)
        return b""


def _parse(message: bytes) -> tuple[str, str]:
    """Returns the authorization id and the token."""
    if len(message) > _MAX_MESSAGE_BYTES or message.count(b"\x01") > _MAX_EXTENSIONS:
        raise _malformed(f"it is too long, with {len(message)} bytes")
    try:
        first = _MESSAGE.fullmatch(message.decode())
    except UnicodeDecodeError:
        raise _malformed("it is not UTF-8") from None
    if first is None:
        raise _malformed("it has another form than RFC 7628")
    token = None
    for pair in first["pairs"].split("\x01")[:-1]:
        parts = _PAIR.fullmatch(pair)
        if parts is None:
            raise _malformed("an extension is not of the form name=value")
        if parts["name"] == "auth":
            bearer = _BEARER.fullmatch(parts["value"])
            if bearer is None or token is not None:
                raise _malformed("auth is not one bearer token")
            token = bearer["token"]
    if token is None:
        raise _malformed("there is no auth")
    return first["authzid"] or "", token


def _malformed(reason: str) -> LoginFailed:
    return LoginFailed("Authentication failed: the OAUTHBEARER message is malformed.", reason)
