"""Signed tokens (JWT), whose keys are in a JWKS."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.security.authentication.jwks import JwksKeys
from barnabas.security.authentication.oauthbearer import InvalidToken, ValidToken

_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Signatures with a private key. A shared secret would let every broker make tokens."""


@dataclass(slots=True, frozen=True, kw_only=True)
class TokenRules:
    """What a token must have."""

    audiences: Sequence[str] = ()  # one of them; empty: any
    issuer: str | None = None  # None: any
    principal_claim: str = "sub"
    scope_claim: str = "scope"
    skew_s: int = 30


class SignedTokenValidator:
    """Checks signature, issuer, audience and times."""

    def __init__(self, keys: JwksKeys, rules: TokenRules) -> None:
        self._keys = keys
        self._rules = rules

    def validate(self, token: str) -> ValidToken:
        import jwt

        rules = self._rules
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            if not isinstance(key_id, str):
                raise InvalidToken("its header has no kid")
            key = self._keys.get(key_id)
            if key is None:
                raise InvalidToken("the key that signed it is not in the JWKS")
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(_ALGORITHMS),
                audience=list(rules.audiences) or None,
                issuer=rules.issuer,
                leeway=rules.skew_s,
                options={
                    "require": ["exp", "iat", rules.principal_claim],
                    "verify_aud": bool(rules.audiences),
                    "verify_iss": rules.issuer is not None,
                },
            )
        except jwt.PyJWTError as error:
            raise InvalidToken(f"{type(error).__name__}: {error}") from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidToken(f"it is malformed: {type(error).__name__}") from None
        return self._checked(claims)

    def _checked(self, claims: dict[str, Any]) -> ValidToken:
        principal = claims[self._rules.principal_claim]
        if not isinstance(principal, str) or not principal.strip():
            raise InvalidToken(f"its claim {self._rules.principal_claim} is not a name")
        expires_s = float(claims["exp"])
        if not math.isfinite(expires_s):
            raise InvalidToken("its claim exp is not a time")
        scope = claims.get(self._rules.scope_claim)
        if scope is not None and not isinstance(scope, str | list):
            raise InvalidToken(f"its claim {self._rules.scope_claim} is not a scope")
        return ValidToken(principal, int(expires_s * 1000))
