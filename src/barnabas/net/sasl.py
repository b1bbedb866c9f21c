"""SASL on the client's side: PLAIN, SCRAM and OAUTHBEARER.

Each mechanism is a generator that yields what to say and is sent what the broker answers. It
returns when the broker has proved what it must, and raises AuthenticationFailed if it does not.
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
from typing import Any, TypeAlias

Exchange: TypeAlias = Generator[bytes, bytes, None]

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")

_FEWEST_ITERATIONS = 4096
_MOST_ITERATIONS = 1_000_000
"""A broker that asks for more would hold up the loop."""

_RENEWED_BEFORE = 0.8
"""A token is fetched anew when so much of its life has passed."""


class AuthenticationFailed(OSError):  # noqa: N818 - what happened, as OSError's own are named
    """The broker does not take us for whom we say we are, or is not the one it claims to be."""

    def __init__(self, _: int | None, reason: str) -> None:
        super().__init__(errno.EACCES, reason)


@dataclass(slots=True, frozen=True)
class Token:
    """A bearer token, and until when it counts."""

    value: str
    expires_s: float
    extensions: Mapping[str, str] = field(default_factory=dict)


class Sasl:
    """Who we are. Name and password may change; connections made from then on use the new ones."""

    def __init__(
        self,
        mechanism: str,
        username: str = "",
        password: str = "",
        fetch_token: Callable[[], Any] | None = None,
    ) -> None:
        self.mechanism = mechanism
        self._username = username
        self._password = password
        self._fetch_token = fetch_token  # may block, or give an awaitable
        self._token: Token | None = None
        self._renew_s = 0.0
        self._fetching: asyncio.Task[Token] | None = None

    def change(self, username: str, password: str) -> None:
        self._username = username
        self._password = password

    async def exchange(self) -> Exchange:
        """A conversation that proves who we are; AuthenticationFailed if no token is to be had."""
        match self.mechanism:
            case "PLAIN":
                return plain(self._username, self._password)
            case "SCRAM-SHA-256" | "SCRAM-SHA-512":
                digest = self.mechanism.removeprefix("SCRAM-").replace("-", "").lower()
                return scram(digest, self._username, self._password)
            case "OAUTHBEARER":
                return oauthbearer(await self._fresh_token())
        known = ", ".join(MECHANISMS)
        raise AuthenticationFailed(None, f"{self.mechanism} is not spoken here; there are {known}")

    async def _fresh_token(self) -> Token:
        if self._token is not None and time.time() < self._renew_s:
            return self._token
        if self._fetching is None:
            self._fetching = asyncio.ensure_future(self._fetch())
            self._fetching.add_done_callback(self._fetched)
        return await asyncio.shield(self._fetching)

    async def _fetch(self) -> Token:
        """Ask whoever gives tokens, in a thread of its own: it may well ask a server."""
        if self._fetch_token is None:
            raise AuthenticationFailed(None, "OAUTHBEARER needs an oauth_cb that gives tokens")
        try:
            told = await asyncio.to_thread(self._fetch_token)
            if asyncio.iscoroutine(told):
                told = await told
            token, expires_s, *rest = told
        except Exception as failure:
            raise AuthenticationFailed(None, f"oauth_cb gave no token: {failure}") from failure
        extensions = rest[1] if len(rest) > 1 else {}
        return Token(token, float(expires_s), extensions or {})

    def _fetched(self, fetching: "asyncio.Task[Token]") -> None:
        self._fetching = None
        if not fetching.cancelled() and fetching.exception() is None:
            now_s = time.time()
            self._token = fetching.result()
            self._renew_s = now_s + _RENEWED_BEFORE * (self._token.expires_s - now_s)


def plain(username: str, password: str) -> Exchange:
    """RFC 4616: name and password in the clear. For TLS, or networks that one trusts."""
    yield b"\0" + username.encode() + b"\0" + password.encode()


def oauthbearer(token: Token) -> Exchange:
    """RFC 7628: a token that somebody else has signed."""
    extensions = "".join(f"{key}={value}\x01" for key, value in token.extensions.items())
    refusal = yield f"n,,\x01auth=Bearer {token.value}\x01{extensions}\x01".encode()
    if refusal:
        yield b"\x01"  # the broker waits for this before it says in so many words that it refuses
        raise AuthenticationFailed(
            None, f"the token was refused: {refusal.decode(errors='replace')}"
        )


def scram(digest: str, username: str, password: str, nonce: str | None = None) -> Exchange:
    """RFC 5802: both ends prove that they know the password, and neither says it."""
    nonce = nonce or base64.b64encode(os.urandom(24)).decode()
    name = username.replace("=", "=3D").replace(",", "=2C")
    first = f"n={name},r={nonce}"
    challenge = (yield f"n,,{first}".encode()).decode()
    told = _attributes(challenge)
    if not told.get("r", "").startswith(nonce) or told["r"] == nonce:
        raise AuthenticationFailed(None, "the broker's SCRAM nonce does not continue ours")
    iterations = int(told.get("i", "0"))
    if not _FEWEST_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise AuthenticationFailed(None, f"the broker asks for {iterations} SCRAM iterations")
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(told["s"]), iterations)
    last = f"c={base64.b64encode(b'n,,').decode()},r={told['r']}"
    signed = ",".join((first, challenge, last)).encode()
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    signature = hmac.digest(stored_key, signed, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    verdict = _attributes((yield f"{last},p={base64.b64encode(proof).decode()}".encode()).decode())
    if "e" in verdict:
        raise AuthenticationFailed(None, f"the broker refuses: {verdict['e']}")
    server_key = hmac.digest(salted, b"Server Key", digest)
    expected = hmac.digest(server_key, signed, digest)
    if not hmac.compare_digest(base64.b64decode(verdict.get("v", "")), expected):
        raise AuthenticationFailed(None, "the broker does not know the password it checks")


def _attributes(message: str) -> dict[str, str]:
    return {each[0]: each[2:] for each in message.split(",") if each[1:2] == "="}
