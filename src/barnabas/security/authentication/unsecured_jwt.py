"""Tokens without a signature, for development: anybody can make one for any user."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.security.authentication.oauthbearer import (
    INSUFFICIENT_SCOPE,
    InvalidToken,
    ValidToken,
)

_PREFIX = "unsecuredValidator"


class UnsecuredTokenValidator:
    """Checks claims and times only. The options are those of the JAAS entry, as in Kafka."""

    def __init__(
        self, options: Mapping[str, str], clock_s: Callable[[], float] = time.time
    ) -> None:
        """Raises ValueError if an option cannot be parsed."""
        self._clock_s = clock_s
        self._principal_claim = options.get(_PREFIX + "PrincipalClaimName") or "sub"
        self._scope_claim = options.get(_PREFIX + "ScopeClaimName") or "scope"
        self._required_scope = (options.get(_PREFIX + "RequiredScope") or "").split()
        self._skew_s = int(options.get(_PREFIX + "AllowableClockSkewMs") or 0) / 1000
        if self._skew_s < 0:
            raise ValueError(f"{_PREFIX}AllowableClockSkewMs must be at least 0")

    def validate(self, token: str) -> ValidToken:
        parts = token.split(".")
        if len(parts) != 3:
            raise InvalidToken(f"it has {len(parts)} parts instead of 3")
        header, claims = _decode(parts[0]), _decode(parts[1])
        if header.get("alg") != "none" or parts[2]:
            raise InvalidToken("it has a signature, and only unsecured tokens are accepted")
        principal = claims.get(self._principal_claim)
        if not isinstance(principal, str) or not principal:
            raise InvalidToken(f"it has no claim {self._principal_claim}")
        expires_s = self._check_times(claims)
        missing = set(self._required_scope).difference(scope_of(claims, self._scope_claim))
        if missing:
            raise InvalidToken(
                f"its scope lacks {', '.join(sorted(missing))}",
                INSUFFICIENT_SCOPE,
                " ".join(self._required_scope),
            )
        return ValidToken(principal, int(expires_s * 1000))

    def _check_times(self, claims: Mapping[str, Any]) -> float:
        """Returns when the token expires, in seconds."""
        now_s = self._clock_s()
        expires_s = _time_of(claims, "exp")
        if expires_s is None:
            raise InvalidToken("it has no claim exp")
        if expires_s <= now_s - self._skew_s:
            raise InvalidToken("it has expired")
        issued_s = _time_of(claims, "iat")
        if issued_s is not None and issued_s > now_s + self._skew_s:
            raise InvalidToken("it is issued in the future")
        if issued_s is not None and issued_s >= expires_s:
            raise InvalidToken("it expires before it is issued")
        return expires_s


def scope_of(claims: Mapping[str, Any], claim: str) -> list[str]:
    """Returns the scopes of a token, which are a list or words of a text."""
    scope = claims.get(claim, ())
    if isinstance(scope, str):
        return scope.split()
    return [item for item in scope if isinstance(item, str)] if isinstance(scope, list) else []


def unsecured_token(options: Mapping[str, str], now_s: float) -> tuple[str, float]:
    """Returns a token with the claims of a JAAS entry, and when it expires.

    `unsecuredLoginStringClaim_sub="admin"` and the like, as in Kafka.
    """
    lifetime_s = int(options.get("unsecuredLoginLifetimeSeconds") or 3600)
    claims: dict[str, Any] = {"iat": int(now_s), "exp": int(now_s) + lifetime_s}
    for name, value in options.items():
        kind, _, claim = name.partition("_")
        match kind:
            case "unsecuredLoginStringClaim":
                claims[claim] = value
            case "unsecuredLoginNumberClaim":
                claims[claim] = float(value)
            case "unsecuredLoginListClaim":
                claims[claim] = value[1:].split(value[:1]) if value else []
    return f"{_encode({'alg': 'none'})}.{_encode(claims)}.", float(claims["exp"])


def _time_of(claims: Mapping[str, Any], claim: str) -> float | None:
    value = claims.get(claim)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e15:
        raise InvalidToken(f"its claim {claim} is not a time")
    return float(value)


def _decode(part: str) -> dict[str, Any]:
    if "=" in part:
        raise InvalidToken("it has padding")
    try:
        decoded = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        raise InvalidToken("it is not JSON in base64url") from None
    if not isinstance(decoded, dict):
        raise InvalidToken("a part of it is not a JSON object")
    return decoded


def _encode(part: Mapping[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
