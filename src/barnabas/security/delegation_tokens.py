"""Delegation tokens: their HMACs, their times, and who may use the APIs about them.

The password of a token is its HMAC: HMAC-SHA512 of the token id with the key that all nodes share
(`delegation.token.secret.key`). It is derived when it is needed, and never stored.
"""

import hmac
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from barnabas.config.setting import Secret
from barnabas.metadata.states import DelegationToken
from barnabas.security.principal import ANONYMOUS, KafkaPrincipal

MAX_CACHED_HMACS: Final = 10_000


@lru_cache(maxsize=MAX_CACHED_HMACS)
def token_hmac(token_id: str, secret_key: Secret) -> bytes:
    """Returns the HMAC of a token."""
    return hmac.digest(secret_key.reveal().encode(), token_id.encode(), "sha512")


def find_token(
    tokens: Iterable[DelegationToken], presented_hmac: bytes, secret_key: Secret
) -> DelegationToken | None:
    """Returns the token with the HMAC that a client presents."""
    for token in tokens:
        if hmac.compare_digest(token_hmac(token.token_id, secret_key), presented_hmac):
            return token
    return None


def may_manage_tokens(principal: KafkaPrincipal) -> bool:
    """Returns whether a client may use the APIs: not anonymously, nor logged in with a token."""
    return principal != ANONYMOUS and not principal.token_authenticated


def may_renew(token: DelegationToken, principal: KafkaPrincipal) -> bool:
    """Returns whether a client may renew and expire a token: its owner and its renewers may."""
    return str(principal) in (token.owner, *token.renewers)


def may_see(token: DelegationToken, principal: KafkaPrincipal) -> bool:
    """Returns whether a client sees a token without an ACL."""
    return str(principal) in (token.owner, token.requester, *token.renewers)


def is_expired(token: DelegationToken, now_ms: int) -> bool:
    return min(token.max_timestamp_ms, token.expiration_timestamp_ms) < now_ms


def end_of_period(now_ms: int, period_ms: int, limit_ms: int) -> int:
    """Returns the end of a requested period; no request (0 or less) asks for all of the limit."""
    return now_ms + (min(limit_ms, period_ms) if period_ms > 0 else limit_ms)
