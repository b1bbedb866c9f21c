"""What is said before the first request: which versions are spoken, and who we are.

A generator that yields a request and how to write it, and is sent the response:
ApiVersions, then SaslHandshake and SaslAuthenticate if the peer wants to know whom it talks to.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from barnabas import __version__
from barnabas.net.formats import API_VERSIONS, OLDEST_API_VERSIONS, Format, Formats
from barnabas.net.sasl import AuthenticationFailed, Exchange
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.wire.schema import Message

ASK_VERSIONS = ApiVersionsRequest(
    client_software_name="barnabas", client_software_version=__version__
)


@dataclass(slots=True, frozen=True)
class Proof:
    """How to prove who we are."""

    mechanism: str
    exchange: Exchange


@dataclass(slots=True, frozen=True)
class Greeted:
    formats: Formats
    session_lifetime_ms: int = 0  # after which we must prove again who we are; 0: never


Talk: TypeAlias = Generator[tuple[Message, Format], Any, Greeted]


def greet(proof: Proof | None) -> Talk:
    told = yield ASK_VERSIONS, API_VERSIONS
    if told.error_code == ErrorCode.UNSUPPORTED_VERSION:
        told = yield ASK_VERSIONS, OLDEST_API_VERSIONS
    if told.error_code != ErrorCode.NONE:
        code = ErrorCode.of(told.error_code)
        raise ProtocolViolation(f"it answered ApiVersions with {code.name}")
    formats = Formats(told)
    if proof is None:
        return Greeted(formats)
    return (yield from authenticate(formats, proof))


def authenticate(formats: Formats, proof: Proof) -> Talk:
    """Prove who we are; on a connection that is in use already, prove it once more (KIP-368)."""
    handshake = SaslHandshakeRequest(mechanism=proof.mechanism)
    told = yield handshake, formats.of(ApiKey.SASL_HANDSHAKE)
    if told.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(told.mechanisms) or "none"
        raise AuthenticationFailed(
            None, f"it does not take sasl.mechanism {proof.mechanism}; it takes {offered}"
        )
    if told.error_code != ErrorCode.NONE:
        code = ErrorCode.of(told.error_code)
        raise AuthenticationFailed(None, f"it answered SaslHandshake with {code.name}")
    lifetime_ms = 0
    try:
        word = next(proof.exchange)
        while True:
            told = yield (
                SaslAuthenticateRequest(auth_bytes=word),
                formats.of(ApiKey.SASL_AUTHENTICATE),
            )
            if told.error_code != ErrorCode.NONE:
                code = ErrorCode.of(told.error_code)
                raise AuthenticationFailed(None, told.error_message or code.name)
            lifetime_ms = told.session_lifetime_ms
            word = proof.exchange.send(told.auth_bytes)
    except StopIteration:
        return Greeted(formats, lifetime_ms)
    except (ValueError, KeyError) as garbled:
        raise AuthenticationFailed(None, f"what it says makes no sense: {garbled}") from None
