"""SCRAM (RFC 5802, RFC 7677): both sides prove that they know the password without sending it.

A client that logs in with a delegation token adds `tokenauth=true` to its first message: the name
is then the token's id, and the password its HMAC.

An unknown user is challenged like any other, and fails at the end with the same message. So a
client cannot find out which users exist.
"""

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from barnabas.metadata.states import ScramCredential
from barnabas.security.authentication.exchange import Login, LoginFailed, quoted
from barnabas.security.principal import USER, KafkaPrincipal
from barnabas.security.scram_credentials import MIN_ITERATIONS, ScramMechanismCode

_FIRST = re.compile(
    r"(?P<header>n,(?:a=(?P<authzid>[^,]*))?,)"
    r"(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>(?:,[^,]*)*))"
)
_FINAL = re.compile(
    r"(?P<unsigned>c=(?P<binding>[^,]+),r=(?P<nonce>[^,]+)(?:,[^,]*)*),p=(?P<proof>[^,]+)"
)
_EXTENSION = re.compile(r"[A-Za-z]+=[^,]+")
_ESCAPE = re.compile(r"=(2C|3D)?")
_NONCE_BYTES = 18
_MAX_MESSAGE_BYTES = 4096
"""Longer ones take milliseconds of the event loop, and the client is not authenticated yet."""

_TOKEN_EXTENSION = "tokenauth"


class ScramCredentials(Protocol):
    """Finds credentials. What it returns is current at each call."""

    def of_user(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential | None:
        """Returns the credential of a user, or None."""

    async def of_token(self, token_id: str, mechanism: ScramMechanismCode) -> "TokenLogin | None":
        """Returns the login with a delegation token, or None if there is no such token."""

    def of_nobody(self, user: str, mechanism: ScramMechanismCode) -> ScramCredential:
        """Returns a credential to challenge an unknown user with, always the same for a name."""


@dataclass(slots=True, frozen=True)
class TokenLogin:
    """The credential of a delegation token, and who logs in with it."""

    credential: ScramCredential
    owner: KafkaPrincipal
    expires_ms: int


class _State(Enum):
    FIRST = auto()
    FINAL = auto()
    ENDED = auto()


class ScramExchange:
    """Two messages each way: first messages with the nonces, final ones with the proofs."""

    def __init__(
        self, mechanism: ScramMechanismCode, credentials: ScramCredentials, nonce: str | None = None
    ) -> None:
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce = nonce or secrets.token_urlsafe(_NONCE_BYTES)
        self._state = _State.FIRST
        self._candidate: Login | None = None  # who the client is if it proves it; None: nobody
        self._user = ""
        self.login: Login | None = None

    async def evaluate(self, message: bytes) -> bytes:
        state, self._state = self._state, _State.ENDED
        if len(message) > _MAX_MESSAGE_BYTES:
            raise self._failure(f"a message of {len(message)} bytes")
        try:
            text = message.decode()
        except UnicodeDecodeError:
            raise self._failure("a message is not UTF-8") from None
        match state:
            case _State.FIRST:
                response = await self._on_first(text)
                self._state = _State.FINAL
                return response.encode()
            case _State.FINAL:
                return self._on_final(text).encode()
            case _State.ENDED:
                raise self._failure("a message after the last one")

    async def _on_first(self, text: str) -> str:
        first = _FIRST.fullmatch(text)
        if first is None:
            raise self._failure("the first message is malformed")
        user = self._unescape(first["name"])
        if first["authzid"] and self._unescape(first["authzid"]) != user:
            raise self._failure(f"user {quoted(user)} asked to be {quoted(first['authzid'])}")
        self._user = user
        extensions = self._parse_extensions(first["extensions"])
        is_token = extensions.get(_TOKEN_EXTENSION, "").lower() == "true"
        self._credential = await self._find_credential(user, is_token=is_token)
        self._combined_nonce = first["nonce"] + self._nonce
        salt = base64.b64encode(self._credential.salt).decode()
        challenge = f"r={self._combined_nonce},s={salt},i={self._credential.iterations}"
        self._binding = base64.b64encode(first["header"].encode()).decode()
        self._signed_start = f"{first['bare']},{challenge}"
        return challenge

    async def _find_credential(self, user: str, *, is_token: bool) -> ScramCredential:
        mechanism = self._mechanism
        nobody = self._credentials.of_nobody(user, mechanism)
        if is_token:
            token = await self._credentials.of_token(user, mechanism)
            if token is None:
                return nobody
            self._candidate = Login(
                token.owner._replace(token_authenticated=True), token.expires_ms
            )
            return token.credential
        credential = self._credentials.of_user(user, mechanism)
        if credential is None or credential.iterations < MIN_ITERATIONS:
            return nobody
        self._candidate = Login(KafkaPrincipal(USER, user))
        return credential

    def _on_final(self, text: str) -> str:
        final = _FINAL.fullmatch(text)
        if final is None:
            raise self._failure("the final message is malformed")
        if final["binding"] != self._binding:
            raise self._failure("the channel binding differs from the first message")
        if final["nonce"] != self._combined_nonce:
            raise self._failure("the nonce is not the one of this exchange")
        signed = f"{self._signed_start},{final['unsigned']}".encode()
        is_proven = self._is_proof(final["proof"], signed)
        if not is_proven or self._candidate is None:
            problem = "is unknown" if self._candidate is None else "has another password"
            raise self._failure(f"user {quoted(self._user)} {problem}")
        self.login = self._candidate
        signature = hmac.digest(self._credential.server_key, signed, self._mechanism.digest)
        return f"v={base64.b64encode(signature).decode()}"

    def _is_proof(self, encoded: str, signed: bytes) -> bool:
        """Returns whether the hash of the client's key, which only the client knows, is stored."""
        digest = self._mechanism.digest
        stored_key = self._credential.stored_key
        try:
            proof = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise self._failure("the proof is not base64") from None
        signature = hmac.digest(stored_key, signed, digest)
        if len(proof) != len(signature):
            raise self._failure("the proof has the wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        return hmac.compare_digest(hashlib.new(digest, client_key).digest(), stored_key)

    def _parse_extensions(self, text: str) -> dict[str, str]:
        extensions = {}
        for entry in text.split(",")[1:]:
            name, _, value = entry.partition("=")
            if not _EXTENSION.fullmatch(entry) or name == "m":
                raise self._failure("an extension of the first message is not supported")
            extensions[name] = value
        return extensions

    def _unescape(self, name: str) -> str:
        def replace(escape: re.Match[str]) -> str:
            match escape[1]:
                case "2C":
                    return ","
                case "3D":
                    return "="
            raise self._failure("the user name has an invalid escape")

        return _ESCAPE.sub(replace, name)

    def _failure(self, reason: str) -> LoginFailed:
        """Returns the error: every failure has the same text for the client."""
        return LoginFailed(
            f"Authentication failed with SASL mechanism {self._mechanism.sasl_name}: "
            "the credentials are not valid.",
            reason,
        )
