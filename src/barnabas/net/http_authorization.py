"""The Authorization header of HTTP: Basic (RFC 7617) and Bearer (RFC 6750)."""

import base64
import binascii
import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias

BASIC: Final = "BASIC"
BEARER: Final = "BEARER"
NONE: Final = "NONE"
METHODS: Final = (NONE, BASIC, BEARER)
"""The values of authentication.method, as in Confluent's settings."""

_MAX_HEADER_CHARACTERS = 16_384
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
_CHALLENGES = {BASIC: 'Basic realm="{realm}", charset="UTF-8"', BEARER: 'Bearer realm="{realm}"'}


@dataclass(slots=True, frozen=True)
class BasicCredentials:
    user: str
    password: str = field(repr=False)


@dataclass(slots=True, frozen=True)
class BearerCredentials:
    token: str = field(repr=False)


HttpCredentials: TypeAlias = BasicCredentials | BearerCredentials


def parse_authorization(header: str | None) -> HttpCredentials | None:
    """Returns the credentials of a header; None if there are none, or they are malformed."""
    scheme, _, value = (header or "").strip().partition(" ")
    value = value.strip()
    if not value or len(value) > _MAX_HEADER_CHARACTERS:
        return None
    match scheme.lower():
        case "bearer":
            return BearerCredentials(value) if _TOKEN.fullmatch(value) else None
        case "basic":
            try:
                text = base64.b64decode(value, validate=True).decode()
            except (binascii.Error, ValueError):
                return None
            user, colon, password = text.partition(":")
            is_usable = user and password and text.isprintable()
            return BasicCredentials(user, password) if colon and is_usable else None
    return None


def is_accepted(credentials: HttpCredentials, methods: tuple[str, ...]) -> bool:
    """Returns whether the scheme of the credentials is one of the methods."""
    return (BASIC if isinstance(credentials, BasicCredentials) else BEARER) in methods


def challenges(methods: tuple[str, ...], realm: str) -> list[str]:
    """Returns the values of WWW-Authenticate: a header for each method."""
    shown = realm.replace("\\", "").replace('"', "")
    return [_CHALLENGES[method].format(realm=shown) for method in methods if method != NONE]
