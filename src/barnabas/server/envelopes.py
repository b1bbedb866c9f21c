"""How a client's request travels from its broker to the controller, and the answer back.

request      its header and body, as the client sent them
principal    version int16 (0), then DefaultPrincipalData: a type and a name
host         the client's address, 4 or 16 bytes
"""

import ipaddress
from struct import Struct, error

from barnabas.server.request_context import Call
from barnabas.wire.apis import api
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.headers import (
    RequestHeader,
    read_response_header,
    write_request_header,
    write_response_header,
)
from barnabas.wire.messages.envelope import EnvelopeRequest
from barnabas.wire.messages.principal import DefaultPrincipalData
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

_VERSION = Struct(">h")
_PRINCIPAL_VERSION = 0


def seal(request: Message, call: Call) -> EnvelopeRequest:
    """A client's request, in the version it was asked in."""
    out = Outgoing()
    write_request_header(_header(request.API_KEY, call), out)
    request.writer(call.api_version)(request, out)
    return EnvelopeRequest(
        request_data=bytes(out),
        request_principal=write_principal(call.principal),
        client_host_address=ipaddress.ip_address(call.host).packed,
    )


def open_answer(content: bytes, key: int, call: Call) -> Message:
    """The answer to the client; ProtocolViolation if it is none."""
    _, body = read_response_header(content, key, call.api_version)
    return api(key).response.read_exactly(content, call.api_version, body)


def write_answer(response: Message, header: RequestHeader) -> bytes:
    """An answer as its client will read it."""
    out = Outgoing()
    write_response_header(header, out)
    response.writer(header.api_version)(response, out)
    return bytes(out)


def write_principal(principal: str) -> bytes:
    kind, _, name = principal.partition(":")
    return _VERSION.pack(_PRINCIPAL_VERSION) + DefaultPrincipalData(type=kind, name=name).write(
        _PRINCIPAL_VERSION
    )


def read_principal(content: bytes | None) -> str:
    """PRINCIPAL_DESERIALIZATION_FAILURE if it is not one."""
    try:
        (version,) = _VERSION.unpack_from(content or b"")
        principal, _ = DefaultPrincipalData.read(content or b"", version, _VERSION.size)
    except (error, ProtocolViolation, KafkaError) as failure:
        raise KafkaError(
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
            "The principal of a forwarded request cannot be read.",
        ) from failure
    return f"{principal.type}:{principal.name}"


def read_client_host(content: bytes) -> str:
    """INVALID_REQUEST if it is no address."""
    try:
        return str(ipaddress.ip_address(content))
    except ValueError as failure:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, "The client's address of a forwarded request is none."
        ) from failure


def _header(key: int, call: Call) -> RequestHeader:
    return RequestHeader(key, call.api_version, call.correlation_id, call.client_id)
