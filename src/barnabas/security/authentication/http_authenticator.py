"""Authenticates clients of an HTTP endpoint of a node: the users of its listeners, by other means.

Basic accepts SCRAM users of the metadata log and users of PLAIN, Bearer the tokens of OAUTHBEARER.
"""

import asyncio
import hashlib
import hmac
import os

from barnabas.metadata.states import ScramCredential
from barnabas.net.http_authorization import (
    BasicCredentials,
    BearerCredentials,
    is_accepted,
    parse_authorization,
)
from barnabas.security.authentication.exchange import LoginFailed, quoted
from barnabas.security.authentication.oauthbearer import InvalidToken, TokenValidator
from barnabas.security.authentication.scram import ScramCredentials
from barnabas.security.authentication.users import PasswordVerifier
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.security.scram_credentials import (
    MIN_ITERATIONS,
    ScramMechanismCode,
    derive_credential,
    salt_password,
)

_MAX_REMEMBERED = 256
_DENIED = "The credentials are not valid."


class HttpAuthenticator:
    """Verifies the Authorization header of requests."""

    def __init__(
        self,
        methods: tuple[str, ...],
        scram: ScramCredentials,
        passwords: PasswordVerifier,
        tokens: TokenValidator | None,
    ) -> None:
        self.methods = methods
        self._scram = scram
        self._passwords = passwords
        self._tokens = tokens
        self._key = os.urandom(32)
        self._verified: dict[str, tuple[ScramCredential, bytes]] = {}
        # One derivation at a time: guesses must not use up the threads of the node.
        self._derivation = asyncio.Lock()

    async def authenticate(self, header: str | None) -> KafkaPrincipal:
        """Returns the principal of a request. Raises LoginFailed."""
        credentials = parse_authorization(header)
        if credentials is None or not is_accepted(credentials, self.methods):
            raise LoginFailed(_DENIED, f"there are no credentials for {' or '.join(self.methods)}")
        match credentials:
            case BearerCredentials(token):
                return self._principal_of(token)
            case BasicCredentials(user, password):
                if not self._passwords.is_valid(user, password):
                    await self._verify_scram(user, password)
                return KafkaPrincipal(USER, user)

    def _principal_of(self, token: str) -> KafkaPrincipal:
        assert self._tokens is not None, "BEARER is one of the methods"
        try:
            return KafkaPrincipal(USER, self._tokens.validate(token).principal_name)
        except InvalidToken as invalid:
            raise LoginFailed(_DENIED, f"the token is not valid: {invalid}") from None

    async def _verify_scram(self, user: str, password: str) -> None:
        """Takes as long for an unknown user. A password that was verified is remembered, until the
        credential of the user is another one."""
        mechanism, credential = self._find(user)
        digest = hmac.digest(self._key, f"{user}:{password}".encode(), hashlib.sha256)
        known, known_digest = self._verified.get(user, (None, b""))
        if known is not None and known is credential and hmac.compare_digest(known_digest, digest):
            return
        expected = credential or self._scram.of_nobody(user, mechanism)
        async with self._derivation:
            derived = await asyncio.to_thread(_derive, mechanism, password, expected)
        is_equal = hmac.compare_digest(derived.stored_key, expected.stored_key)
        if not is_equal or credential is None:
            problem = "is unknown" if credential is None else "has another password"
            raise LoginFailed(_DENIED, f"user {quoted(user)} {problem}")
        if len(self._verified) >= _MAX_REMEMBERED:
            del self._verified[next(iter(self._verified))]
        self._verified[user] = (credential, digest)

    def _find(self, user: str) -> tuple[ScramMechanismCode, ScramCredential | None]:
        for mechanism in (ScramMechanismCode.SCRAM_SHA_512, ScramMechanismCode.SCRAM_SHA_256):
            credential = self._scram.of_user(user, mechanism)
            if credential is not None and credential.iterations >= MIN_ITERATIONS:
                return mechanism, credential
        return ScramMechanismCode.SCRAM_SHA_512, None


def _derive(mechanism: ScramMechanismCode, password: str, like: ScramCredential) -> ScramCredential:
    salted = salt_password(mechanism, password.encode(), like.salt, like.iterations)
    return derive_credential(mechanism, salted, like.salt, like.iterations)
