"""The headers of requests and responses.

    request 1    api key int16, api version int16, correlation id int32, client id string | null
    request 2    the same, then tagged fields
    response 0   correlation id int32
    response 1   the same, then tagged fields

The client id has a plain two-byte length in version 2 as well: a broker reads it before it knows
whether it supports the requested version.
"""

from struct import Struct, error
from typing import NamedTuple

from barnabas.wire.apis import is_flexible, response_header_version
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.primitives import read_tags, write_tags, write_uvarint
from barnabas.wire.schema import Buffer

_REQUEST = Struct(">hhih")
_CORRELATION_ID = Struct(">i")


class RequestHeader(NamedTuple):
    """API, version, correlation id and client id of a request."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    unknown_tags: dict[int, bytes] | None = None


class ResponseHeader(NamedTuple):
    """The correlation id of the request."""

    correlation_id: int
    unknown_tags: dict[int, bytes] | None = None


def read_request_header(frame: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """Returns the header of a request and the position of its body.

    An unsupported API or version raises nothing here: the response needs the correlation id,
    for example to an ApiVersions request of a newer client (KIP-511).
    """
    view = frame if type(frame) is memoryview else memoryview(frame)
    try:
        api_key, api_version, correlation_id, length = _REQUEST.unpack_from(view, position)
        position += _REQUEST.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(view):
                raise ProtocolViolation(f"the client id claims {length} bytes, past the frame")
            client_id = view[position:end].tobytes().decode()
            position = end
        tags = None
        if is_flexible(api_key, api_version):
            count = view[position]
            position += 1
            if count:
                tags, position = read_tags(view, position, len(view), count)
    except (error, IndexError):
        raise ProtocolViolation("the request ends within its header") from None
    except UnicodeDecodeError:
        raise ProtocolViolation("the client id is not UTF-8") from None
    return RequestHeader(api_key, api_version, correlation_id, client_id, tags), position


def write_request_header(header: RequestHeader, out: Outgoing) -> None:
    """Appends the header of a request, in the header version of its API and version."""
    client_id = b"" if header.client_id is None else header.client_id.encode()
    length = -1 if header.client_id is None else len(client_id)
    out += _REQUEST.pack(header.api_key, header.api_version, header.correlation_id, length)
    out += client_id
    if is_flexible(header.api_key, header.api_version):
        _append_tags(out, header.unknown_tags)


def read_response_header(
    frame: Buffer, api_key: int, api_version: int, position: int = 0
) -> tuple[ResponseHeader, int]:
    """Returns the header of a response and the position of its body."""
    view = frame if type(frame) is memoryview else memoryview(frame)
    tags = None
    try:
        (correlation_id,) = _CORRELATION_ID.unpack_from(view, position)
        position += _CORRELATION_ID.size
        if response_header_version(api_key, api_version) == 1:
            count = view[position]
            position += 1
            if count:
                tags, position = read_tags(view, position, len(view), count)
    except (error, IndexError):
        raise ProtocolViolation("the response ends within its header") from None
    return ResponseHeader(correlation_id, tags), position


def write_response_header(header: RequestHeader, out: Outgoing) -> None:
    """Appends the header of the response to a request."""
    out += _CORRELATION_ID.pack(header.correlation_id)
    if response_header_version(header.api_key, header.api_version) == 1:
        out.append(0)


def _append_tags(out: Outgoing, tags: dict[int, bytes] | None) -> None:
    write_uvarint(out, len(tags) if tags else 0)
    if tags:
        write_tags(out, tags)
