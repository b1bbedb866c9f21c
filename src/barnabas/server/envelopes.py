"""Envelopes, in which a broker forwards a client's request to the controller (KIP-590).

request      its header and body, as the client sent them
principal    version int16 (0), then DefaultPrincipalData: type, name, login by a delegation token
host         the client's address, 4 or 16 bytes
"""

import ipaddress
from struct import Struct, error

from barnabas.security.principal import KafkaPrincipal
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.headers import (
    RequestHeader,
    read_response_header,
    write_request_header,
    write_response_header,
)
from barnabas.wire.messages.envelope import DefaultPrincipalData, EnvelopeRequest
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

_VERSION = Struct(">h")
_PRINCIPAL_VERSION = 0


def wrap_request(request: Message, context: RequestContext) -> EnvelopeRequest:
    """Wraps a client's request, in the version of the client."""
    out = Outgoing()
    write_request_header(_header(request.API_KEY, context), out)
    request.writer(context.api_version)(request, out)
    return EnvelopeRequest(
        request_data=bytes(out),
        request_principal=write_principal(context.principal),
        client_host_address=ipaddress.ip_address(context.host).packed,
    )


def unwrap_response(content: bytes, key: int, context: RequestContext) -> Message:
    """Returns the response to the client. Raises ProtocolViolation if it cannot be read."""
    _, body = read_response_header(content, key, context.api_version)
    return api(key).response.read_exactly(content, context.api_version, body)


def encode_response(response: Message, header: RequestHeader) -> bytes:
    """Returns the bytes of a response, as the client will read it."""
    out = Outgoing()
    write_response_header(header, out)
    response.writer(header.api_version)(response, out)
    return bytes(out)


def write_principal(principal: KafkaPrincipal) -> bytes:
    data = DefaultPrincipalData(
        type=principal.type,
        name=principal.name,
        token_authenticated=principal.token_authenticated,
    )
    return _VERSION.pack(_PRINCIPAL_VERSION) + data.write(_PRINCIPAL_VERSION)


def read_principal(content: bytes | None) -> KafkaPrincipal:
    """Raises PRINCIPAL_DESERIALIZATION_FAILURE if the principal cannot be read."""
    try:
        (version,) = _VERSION.unpack_from(content or b"")
        data, _ = DefaultPrincipalData.read(content or b"", version, _VERSION.size)
    except (error, ProtocolViolation, KafkaError) as failure:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            "The principal of a forwarded request cannot be read.",
        ) from failure
    return KafkaPrincipal(data.type, data.name, data.token_authenticated)


def read_client_host(content: bytes) -> str:
    """Raises INVALID_REQUEST if the content is not an IP address."""
    try:
        return str(ipaddress.ip_address(content))
    except ValueError as failure:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "The client's address of a forwarded request is not an IP address.",
        ) from failure


def _header(key: int, context: RequestContext) -> RequestHeader:
    return RequestHeader(key, context.api_version, context.correlation_id, context.client_id)
