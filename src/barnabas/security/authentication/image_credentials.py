"""The SCRAM credentials of the metadata image, and those derived from delegation tokens."""

import asyncio
import base64
import os
import time
from collections.abc import Callable

from barnabas.config import Secret
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import ScramCredential
from barnabas.security.authentication.scram import TokenLogin
from barnabas.security.authentication.unknown_users import UnknownUsers
from barnabas.security.delegation_tokens import is_expired, token_hmac
from barnabas.security.principal import KafkaPrincipal
from barnabas.security.scram_credentials import (
    MIN_ITERATIONS,
    ScramMechanismCode,
    derive_credential,
    salt_password,
)

_SALT_BYTES = 32
_MAX_CACHED_TOKENS = 10_000


class ImageCredentials:
    """Looks credentials up in the current image. `secret_key` is that of delegation tokens."""

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        secret_key: Secret | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._image = image
        self._secret_key = secret_key
        self._clock = clock
        self._unknown_users = UnknownUsers(lambda: image().scram, secret_key)
        self._token_credentials: dict[tuple[str, ScramMechanismCode], ScramCredential] = {}

    def on_scram_change(self) -> None:
        """Called when the credentials of users have changed."""
        self._unknown_users.on_change()

    def of_user(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential | None:
        return self._image().scram.get((user, mechanism.value))

    async def of_token(self, token_id: str, mechanism: ScramMechanismCode) -> TokenLogin | None:
        token = self._image().tokens.get(token_id)
        if token is None or self._secret_key is None:
            return None
        if is_expired(token, self._clock()):
            return None  # the controller removes it only once in a while
        key = (token_id, mechanism)
        credential = self._token_credentials.get(key)
        if credential is None:
            password = token_hmac(token_id, self._secret_key)
            credential = await asyncio.to_thread(_derive, mechanism, password)
            self._cache(key, credential)
        expires_ms = min(token.expiration_timestamp_ms, token.max_timestamp_ms)
        return TokenLogin(credential, KafkaPrincipal.parse(token.owner), expires_ms)

    def of_nobody(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential:
        return self._unknown_users.credential(user, mechanism)

    def _cache(self, key: tuple[str, ScramMechanismCode], credential: ScramCredential) -> None:
        cache = self._token_credentials
        if len(cache) >= _MAX_CACHED_TOKENS:
            del cache[next(iter(cache))]
        cache[key] = credential


def _derive(mechanism: ScramMechanismCode, hmac_of_token: bytes) -> ScramCredential:
    """Derives the credential of a token, whose password is its HMAC in base64."""
    salt = os.urandom(_SALT_BYTES)
    password = base64.b64encode(hmac_of_token)
    salted = salt_password(mechanism, password, salt, MIN_ITERATIONS)
    return derive_credential(mechanism, salted, salt, MIN_ITERATIONS)
