"""SASL on the client's side: PLAIN, SCRAM, OAUTHBEARER and GSSAPI.

Each mechanism is a generator that yields the client's message and is sent the server's. It returns
when the exchange is complete, and raises AuthenticationFailed if the server cannot be trusted.
"""

import asyncio
import base64
import errno
import hashlib
import hmac
import os
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from barnabas.net.gssapi_login import KerberosLogin

SaslExchange: TypeAlias = Generator[bytes, bytes, None]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

_MIN_ITERATIONS = 4096
_MAX_ITERATIONS = 1_000_000
"""A server that asks for more would block the loop."""

_RENEWAL_FRACTION = 0.8
"""A token is renewed after this fraction of its lifetime."""


class AuthenticationFailed(OSError):  # noqa: N818 - what happened, as OSError's own are named
    """The server rejected the credentials, or could not prove its own identity."""

    def __init__(self, _: int | None, reason: str) -> None:
        super().__init__(errno.EACCES, reason)


@dataclass(slots=True, frozen=True)
class BearerToken:
    """A bearer token and when it expires."""

    value: str
    expires_s: float
    extensions: Mapping[str, str] = field(default_factory=dict)


class SaslClient:
    """The credentials of a client. Updated ones are used by new connections."""

    def __init__(
        self,
        mechanism: str,
        username: str = "",
        password: str = "",
        fetch_token: Callable[[], Any] | None = None,
        *,
        is_token: bool = False,
        kerberos: "KerberosLogin | None" = None,
    ) -> None:
        """With `is_token`, user name and password of SCRAM are those of a delegation token."""
        self.mechanism = mechanism
        self._is_token = is_token
        self._kerberos = kerberos
        self._username = username
        self._password = password
        self._fetch_token = fetch_token  # may block, or return an awaitable
        self._token: BearerToken | None = None
        self._renew_s = 0.0
        self._pending_fetch: asyncio.Task[BearerToken] | None = None

    def update_credentials(self, username: str, password: str) -> None:
        self._username = username
        self._password = password

    async def exchange(self, host: str) -> SaslExchange:
        """Returns the exchange with a host. Raises AuthenticationFailed if there is no token."""
        match self.mechanism:
            case "PLAIN":
                return plain(self._username, self._password)
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                digest = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
                return scram(digest, self._username, self._password, is_token=self._is_token)
            case "OAUTHBEARER":
                return oauthbearer(await self._fresh_token())
            case "GSSAPI" if self._kerberos is not None:
                return await self._kerberos.exchange(host)
        supported = ", ".join(MECHANISMS)
        raise AuthenticationFailed(
            None, f"sasl.mechanism {self.mechanism} is not supported; supported are {supported}"
        )

    async def _fresh_token(self) -> BearerToken:
        if self._token is not None and time.time() < self._renew_s:
            return self._token
        if self._pending_fetch is None:
            self._pending_fetch = asyncio.ensure_future(self._fetch())
            self._pending_fetch.add_done_callback(self._on_fetched)
        return await asyncio.shield(self._pending_fetch)

    async def _fetch(self) -> BearerToken:
        """Calls oauth_cb in a thread: it may send a request to a server."""
        if self._fetch_token is None:
            raise AuthenticationFailed(None, "OAUTHBEARER needs an oauth_cb that returns tokens")
        try:
            result = await asyncio.to_thread(self._fetch_token)
            if asyncio.iscoroutine(result):
                result = await result
            token, expires_s, *rest = result
        except Exception as failure:
            raise AuthenticationFailed(None, f"oauth_cb returned no token: {failure}") from failure
        extensions = rest[1] if len(rest) > 1 else {}
        return BearerToken(token, float(expires_s), extensions or {})

    def _on_fetched(self, fetch: "asyncio.Task[BearerToken]") -> None:
        self._pending_fetch = None
        if not fetch.cancelled() and fetch.exception() is None:
            now_s = time.time()
            self._token = fetch.result()
            self._renew_s = now_s + _RENEWAL_FRACTION * (self._token.expires_s - now_s)


def plain(username: str, password: str) -> SaslExchange:
    """RFC 4616: username and password as plain text. Use it with TLS."""
    yield b"\0" + username.encode() + b"\0" + password.encode()


def oauthbearer(token: BearerToken) -> SaslExchange:
    """RFC 7628: a signed token."""
    extensions = "".join(f"{key}={value}\x01" for key, value in token.extensions.items())
    error = yield f"n,,\x01auth=Bearer {token.value}\x01{extensions}\x01".encode()
    if error:
        yield b"\x01"  # the server waits for this before it sends the failure
        raise AuthenticationFailed(
            None, f"the token was rejected: {error.decode(errors='replace')}"
        )


def scram(
    digest: str,
    username: str,
    password: str,
    nonce: str | None = None,
    *,
    is_token: bool = False,
) -> SaslExchange:
    """RFC 5802: both sides prove that they know the password without sending it.

    With a delegation token, the user name is its id and the password its HMAC in base64 (KIP-48).
    """
    nonce = nonce or base64.b64encode(os.urandom(24)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}{',tokenauth=true' if is_token else ''}"
    challenge = (yield f"n,,{first}".encode()).decode()
    server_first = _attributes(challenge)
    if not server_first.get("r", "").startswith(nonce) or server_first["r"] == nonce:
        raise AuthenticationFailed(None, "the broker's SCRAM nonce does not continue ours")
    iterations = int(server_first.get("i", "0"))
    if not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
        raise AuthenticationFailed(None, f"the broker asks for {iterations} SCRAM iterations")
    salted = hashlib.pbkdf2_hmac(
        digest, password.encode(), base64.b64decode(server_first["s"]), iterations
    )
    last = f"c={base64.b64encode(b'n,,').decode()},r={server_first['r']}"
    signed = ",".join((first, challenge, last)).encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    signature = hmac.digest(stored_key, signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_final = _attributes(
        (yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode()
    )
    if "e" in server_final:
        raise AuthenticationFailed(None, f"the broker rejected the proof: {server_final['e']}")
    server_key = hmac.digest(salted, b"Server Key", digest)
    expected = hmac.digest(server_key, signed, digest)
    if not hmac.compare_digest(base64.b64decode(server_final.get("v", "")), expected):
        raise AuthenticationFailed(None, "the broker could not prove that it knows the password")


def _attributes(message: str) -> dict[str, str]:
    return {item[0]: item[2:] for item in message.split(",") if item[1:2] == "="}
