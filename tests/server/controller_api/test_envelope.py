"""A forwarded request returns the client's response, or the errors of Kafka."""

from struct import pack
from typing import Any

import pytest
from tests.server.controller_api.fake_controller import FakeControllerListener
from tests.server.harness import frame, on_a_loop

from barnabas.security.principal import KafkaPrincipal
from barnabas.server.controller_api import HANDLERS, topics
from barnabas.server.envelopes import write_principal
from barnabas.server.handlers import ApiHandlers
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.headers import read_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.configs import DescribeConfigsRequest
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.envelope import EnvelopeRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.registrations import BrokerHeartbeatRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

ALICE = KafkaPrincipal("User", "alice", token_authenticated=True)
WRITTEN_ALICE = write_principal(ALICE)
HOST = bytes([10, 0, 0, 9])
CREATE = CreateTopicsRequest(topics=[CreatableTopic(name="t")], timeout_ms=5)


def sealed(
    content: bytes, principal: bytes | None = WRITTEN_ALICE, host: bytes = HOST
) -> EnvelopeRequest:
    return EnvelopeRequest(
        request_data=content, request_principal=principal, client_host_address=host
    )


def inside(request: Any, version: int) -> bytes:
    return frame(request, version, correlation_id=77, client_id="abc")[4:]


@on_a_loop
async def test_an_envelope_contains_the_response_to_the_client() -> None:
    listener = FakeControllerListener()
    response = await listener.request(sealed(inside(CREATE, 7)), 0)
    assert response.error_code == ErrorCode.NONE
    header, body = read_response_header(response.response_data, ApiKey.CREATE_TOPICS, 7)
    assert header.correlation_id == 77
    result = CreateTopicsResponse.read_exactly(response.response_data, 7, body)
    assert isinstance(result, CreateTopicsResponse)
    assert listener.controller.requests == [(CREATE, 5)]


@on_a_loop
async def test_the_client_of_a_forwarded_request_is_the_brokers_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []

    async def note(_: Any, context: Any) -> CreateTopicsResponse:
        calls.append((context.principal, context.host, context.client_id, context.api_version))
        return CreateTopicsResponse()

    monkeypatch.setattr(topics, "create_topics", note)
    await FakeControllerListener().request(sealed(inside(CREATE, 6)), 0)
    await FakeControllerListener().request(sealed(inside(CREATE, 6), host=bytes(15) + b"\1"), 0)
    assert calls == [(ALICE, "10.0.0.9", "abc", 6), (ALICE, "::1", "abc", 6)]


@on_a_loop
async def test_an_inactive_controller_returns_the_error_to_the_broker_not_to_the_client() -> None:
    listener = FakeControllerListener()
    listener.controller.is_active = False
    listener.quorum.is_leader = False
    partition = RequestPartitionData(partition_index=0)
    topic = RequestTopicData(topic_name="__cluster_metadata", partitions=[partition])
    for content in (inside(CREATE, 7), inside(DescribeQuorumRequest(topics=[topic]), 2)):
        response = await listener.request(sealed(content), 0)
        assert response.error_code == ErrorCode.NOT_CONTROLLER
        assert response.response_data is None


@on_a_loop
async def test_a_handlers_error_is_returned_to_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(_: Any, __: Any) -> None:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "no")

    monkeypatch.setattr(topics, "create_topics", fail)
    response = await FakeControllerListener().request(sealed(inside(CREATE, 7)), 0)
    assert response.error_code == ErrorCode.NONE
    result = CreateTopicsResponse.read_exactly(response.response_data, 7, 5)
    assert result.topics[0].error_code == ErrorCode.POLICY_VIOLATION


UNFORWARDABLE = {
    "an envelope": inside(sealed(inside(CREATE, 7)), 0),
    "ApiVersions": inside(ApiVersionsRequest(), 3),
    "a heartbeat": inside(BrokerHeartbeatRequest(), 1),
    "DescribeConfigs": inside(DescribeConfigsRequest(), 4),
    "Metadata": inside(MetadataRequest(topics=None), 12),
    "Produce": inside(ProduceRequest(), 9),
}
UNREADABLE = {
    "nothing": b"",
    "no request": b"\1\2\3",
    "a request cut short": inside(CREATE, 7)[:-3],
    "an unknown version": pack(">hhih", 19, 99, 1, -1) + b"\0",
    "an unknown API": pack(">hhih", 999, 0, 1, -1),
    "a retired API": pack(">hhih", 4, 0, 1, -1),
}


@pytest.mark.parametrize(
    ("envelope", "code"),
    [
        *((sealed(content), ErrorCode.INVALID_REQUEST) for content in UNFORWARDABLE.values()),
        *((sealed(content), ErrorCode.UNSUPPORTED_VERSION) for content in UNREADABLE.values()),
        (sealed(inside(CREATE, 7), principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (sealed(inside(CREATE, 7), principal=b"\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (
            sealed(inside(CREATE, 7), principal=b"\0\1" + WRITTEN_ALICE[2:]),
            ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
        ),
        (sealed(inside(CREATE, 7), host=b"abc"), ErrorCode.INVALID_REQUEST),
    ],
    ids=[
        *UNFORWARDABLE,
        *UNREADABLE,
        "no principal",
        "a principal cut short",
        "a principal of the future",
        "no address",
    ],
)
def test_an_envelope_that_cannot_be_read_is_rejected(
    envelope: EnvelopeRequest, code: ErrorCode
) -> None:
    @on_a_loop
    async def scenario() -> None:
        listener = FakeControllerListener()
        response = await listener.request(envelope, 0)
        assert response.error_code == code
        assert response.response_data is None
        assert listener.controller.requests == []

    scenario()


def test_a_handler_is_imported_when_it_is_first_looked_up() -> None:
    assert isinstance(HANDLERS, ApiHandlers)
    assert HANDLERS[ApiKey.CREATE_TOPICS] is topics.create_topics
