"""The requests before the first request of a user: ApiVersions, then SASL if it is configured.

A handshake is a generator that yields a request and its codec, and is sent the response.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from barnabas import __version__
from barnabas.net.api_versions import (
    API_VERSIONS,
    OLDEST_API_VERSIONS,
    ApiCodec,
    NegotiatedVersions,
)
from barnabas.net.sasl import AuthenticationFailed, SaslExchange
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from barnabas.wire.schema import Message

API_VERSIONS_REQUEST = ApiVersionsRequest(
    client_software_name="barnabas", client_software_version=__version__
)


@dataclass(slots=True, frozen=True)
class SaslSession:
    """A SASL mechanism and its exchange."""

    mechanism: str
    exchange: SaslExchange


@dataclass(slots=True, frozen=True)
class HandshakeResult:
    versions: NegotiatedVersions
    session_lifetime_ms: int = 0  # after which the client must re-authenticate; 0: never


Handshake: TypeAlias = Generator[tuple[Message, ApiCodec], Any, HandshakeResult]


def negotiate(sasl: SaslSession | None) -> Handshake:
    """Negotiates API versions, then authenticates if `sasl` is given."""
    response = yield API_VERSIONS_REQUEST, API_VERSIONS
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        response = yield API_VERSIONS_REQUEST, OLDEST_API_VERSIONS
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode.of(response.error_code)
        raise ProtocolViolation(f"the peer responded to ApiVersions with {code.name}")
    versions = NegotiatedVersions(response)
    if sasl is None:
        return HandshakeResult(versions)
    return (yield from authenticate(versions, sasl))


def authenticate(versions: NegotiatedVersions, sasl: SaslSession) -> Handshake:
    """Authenticates; on a connection that is in use, re-authenticates (KIP-368)."""
    handshake = SaslHandshakeRequest(mechanism=sasl.mechanism)
    response = yield handshake, versions.codec(ApiKey.SASL_HANDSHAKE)
    if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        enabled = ", ".join(response.mechanisms) or "none"
        raise AuthenticationFailed(
            None, f"sasl.mechanism {sasl.mechanism} is not enabled there; enabled are {enabled}"
        )
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode.of(response.error_code)
        raise AuthenticationFailed(None, f"the peer responded to SaslHandshake with {code.name}")
    lifetime_ms = 0
    try:
        auth_bytes = next(sasl.exchange)
        while True:
            response = yield (
                SaslAuthenticateRequest(auth_bytes=auth_bytes),
                versions.codec(ApiKey.SASL_AUTHENTICATE),
            )
            if response.error_code != ErrorCode.NONE:
                code = ErrorCode.of(response.error_code)
                raise AuthenticationFailed(None, response.error_message or code.name)
            lifetime_ms = response.session_lifetime_ms
            auth_bytes = sasl.exchange.send(response.auth_bytes)
    except StopIteration:
        return HandshakeResult(versions, lifetime_ms)
    except (ValueError, KeyError) as error:
        raise AuthenticationFailed(None, f"the SASL response is malformed: {error}") from None
