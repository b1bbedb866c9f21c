"""Request and response headers, their versions, and malformed headers."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wire import facts

from barnabas.wire.apis import (
    ApiKey,
    api,
    apis,
    request_header_version,
    response_header_version,
)
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.headers import (
    RequestHeader,
    ResponseHeader,
    read_request_header,
    read_response_header,
    write_request_header,
    write_response_header,
)
from barnabas.wire.outgoing import Outgoing

HEADERS = st.builds(
    RequestHeader,
    api_key=st.sampled_from([int(item.key) for item in apis()]),
    api_version=st.integers(0, 20),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    client_id=st.none() | st.text(max_size=30),
    unknown_tags=st.none(),
)


def encoded(header: RequestHeader) -> bytes:
    out = Outgoing()
    write_request_header(header, out)
    return bytes(out)


def test_a_request_header_has_the_layout_of_the_protocol() -> None:
    header = RequestHeader(ApiKey.PRODUCE, 8, 7, "me")
    assert encoded(header) == b"\x00\x00" + b"\x00\x08" + b"\x00\x00\x00\x07" + b"\x00\x02me"


def test_the_client_id_has_an_int16_length_in_a_flexible_header() -> None:
    header = RequestHeader(ApiKey.PRODUCE, 9, 7, "me")
    assert encoded(header) == b"\x00\x00\x00\x09\x00\x00\x00\x07" + b"\x00\x02me" + b"\x00"
    assert encoded(header._replace(client_id=None))[-3:] == b"\xff\xff\x00"


def test_the_layouts_equal_the_facts() -> None:
    request, response = (
        item for item in facts.messages("api-messages.txt") if item.kind == "header"
    )
    assert [field.name for field in request.fields] == [
        "RequestApiKey",
        "RequestApiVersion",
        "CorrelationId",
        "ClientId",
    ]
    assert [field.type for field in request.fields] == ["int16", "int16", "int32", "string"]
    assert (request.versions, request.flexible) == ("1-2", "2+")
    assert [(field.name, field.type) for field in response.fields] == [("CorrelationId", "int32")]
    assert (response.versions, response.flexible) == ("0-1", "1+")


@given(HEADERS)
def test_a_request_header_is_read_as_written(header: RequestHeader) -> None:
    frame = encoded(header)
    assert read_request_header(b"size" + frame + b"body", 4) == (header, 4 + len(frame))


@given(HEADERS, st.data())
def test_a_damaged_header_is_read_or_is_a_violation(
    header: RequestHeader, data: st.DataObject
) -> None:
    frame = bytearray(encoded(header))
    frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    with suppress(ProtocolViolation):
        read_request_header(frame)
    with suppress(ProtocolViolation):
        read_request_header(frame[: data.draw(st.integers(0, len(frame)))])


def test_a_truncated_header_is_a_violation() -> None:
    frame = encoded(RequestHeader(ApiKey.PRODUCE, 9, 7, "me", {4: b"tag"}))
    for length in range(len(frame)):
        with pytest.raises(ProtocolViolation):
            read_request_header(frame[:length])


def test_unknown_tags_of_a_header_are_kept() -> None:
    header = RequestHeader(ApiKey.PRODUCE, 9, 7, "me", {4: b"tag"})
    assert read_request_header(encoded(header))[0] == header


def test_a_request_for_an_unknown_api_still_has_a_header() -> None:
    header, position = read_request_header(b"\x7f\xff\x00\x01\x00\x00\x00\x09\xff\xff")
    assert header == RequestHeader(0x7FFF, 1, 9, None)
    assert position == 10


def test_an_api_versions_request_of_an_unknown_version_has_a_header() -> None:
    """KIP-511: the broker responds in version 0 and needs the correlation id."""
    future = RequestHeader(ApiKey.API_VERSIONS, 99, 5, "client")
    assert read_request_header(encoded(future))[0] == future


@pytest.mark.parametrize(
    ("key", "version", "request_version", "response_version"),
    [
        (ApiKey.PRODUCE, 8, 1, 0),
        (ApiKey.PRODUCE, 9, 2, 1),
        (ApiKey.API_VERSIONS, 2, 1, 0),
        (ApiKey.API_VERSIONS, 3, 2, 0),
        (ApiKey.SASL_HANDSHAKE, 1, 1, 0),
        (ApiKey.VOTE, 0, 2, 1),
    ],
)
def test_each_version_has_its_header_versions(
    key: ApiKey, version: int, request_version: int, response_version: int
) -> None:
    assert request_header_version(key, version) == request_version
    assert response_header_version(key, version) == response_version


@pytest.mark.parametrize(
    ("version", "header"), [(8, b"\x00\x00\x00\x07"), (9, b"\x00\x00\x00\x07\x00")]
)
def test_a_response_header_carries_the_correlation_id(version: int, header: bytes) -> None:
    request = RequestHeader(ApiKey.PRODUCE, version, 7, None)
    out = Outgoing()
    write_response_header(request, out)
    assert bytes(out) == header
    read = read_response_header(header + b"body", ApiKey.PRODUCE, version)
    assert read == (ResponseHeader(7), len(header))
    with pytest.raises(ProtocolViolation):
        read_response_header(header[:-1], ApiKey.PRODUCE, version)


@pytest.mark.parametrize("key", [ApiKey.LEADER_AND_ISR, 95, -1, 32767])
def test_an_unsupported_api_key_is_an_unsupported_version(key: int) -> None:
    with pytest.raises(KafkaError) as raised:
        api(key)
    assert raised.value.code is ErrorCode.UNSUPPORTED_VERSION
