"""From a frame to its response or error response."""

import asyncio
import gc
import logging

import pytest
from tests.server.harness import Server, frame, on_a_loop

from barnabas.server.network.suspended_request import SuspendedRequest
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode, KafkaError, ProtocolViolation
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.configs import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.outgoing import Outgoing

LIST = ApiKey.LIST_CONFIG_RESOURCES
PRODUCE = ApiKey.PRODUCE

ASK = (ListConfigResourcesRequest(), 1, 7)


@pytest.mark.parametrize("parks", [False, True])
def test_an_exception_becomes_an_error_response(parks: bool) -> None:
    async def fail(
        _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        if parks:
            await asyncio.sleep(0)
        raise KafkaError(ErrorCode.INVALID_REQUEST, "why")

    @on_a_loop
    async def scenario() -> None:
        server = Server({LIST: fail})
        client = server.connect()
        await client.send(ASK, ASK)
        for _ in range(2):
            correlation_id, response = await client.receive(LIST, 1)
            assert (correlation_id, response.error_code) == (7, ErrorCode.INVALID_REQUEST)
        metrics = server.broker.metrics.request("ListConfigResources")
        assert metrics.errors == {ErrorCode.INVALID_REQUEST: 2}

    scenario()


@pytest.mark.parametrize("parks", [False, True])
def test_a_response_that_cannot_be_encoded_becomes_an_error_response(parks: bool) -> None:
    async def garble(
        _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        if parks:
            await asyncio.sleep(0)
        resources = [ConfigResource(resource_name="good"), ConfigResource(resource_type=10**9)]
        return ListConfigResourcesResponse(config_resources=resources)

    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: garble}).connect()
        await client.send(ASK)
        _, response = await client.receive(LIST, 1)
        assert response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert response.config_resources == []

    scenario()


@pytest.mark.parametrize("parks", [False, True])
def test_a_protocol_violation_raised_by_a_handler_closes_the_connection(parks: bool) -> None:
    async def object_to(
        _: ListConfigResourcesRequest, __: RequestContext
    ) -> ListConfigResourcesResponse:
        if parks:
            await asyncio.sleep(0)
        raise ProtocolViolation("two batches in one partition")

    @on_a_loop
    async def scenario() -> None:
        client = Server({LIST: object_to}).connect()
        await client.send(ASK)
        assert await client.is_closed()

    scenario()


@pytest.mark.parametrize("parks", [False, True])
def test_no_response_is_sent_if_the_client_expects_none(parks: bool) -> None:
    async def silent(request: ProduceRequest, _: RequestContext) -> ProduceResponse | None:
        if parks:
            await asyncio.sleep(0)
        return ProduceResponse() if request.acks else None

    @on_a_loop
    async def scenario() -> None:
        client = Server({PRODUCE: silent}).connect()
        await client.send((ProduceRequest(acks=0), 9, 1), (ProduceRequest(acks=1), 9, 2))
        assert (await client.receive(PRODUCE, 9))[0] == 2

    scenario()


def test_a_failed_produce_without_acks_closes_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fail(_: ProduceRequest, __: RequestContext) -> ProduceResponse:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "moved")

    @on_a_loop
    async def scenario() -> None:
        client = Server({PRODUCE: fail}).connect()
        await client.send((ProduceRequest(acks=0), 9, 1))
        with caplog.at_level(logging.WARNING, "barnabas"):
            assert await client.is_closed()

    scenario()
    assert "NOT_LEADER_OR_FOLLOWER" in caplog.text


@pytest.mark.parametrize("version", [6, 127, 32767, -1])
def test_an_api_versions_request_too_new_receives_the_supported_versions(version: int) -> None:
    """KIP-511: the body has version 0, whatever version was requested."""

    @on_a_loop
    async def scenario() -> None:
        client = Server().connect()
        content = frame(ApiVersionsRequest(), 0, 5)[4:]
        content = content[:2] + version.to_bytes(2, "big", signed=True) + content[4:]
        content += b"fields of the future"
        await client.send_bytes(len(content).to_bytes(4, "big") + content)
        correlation_id, response = await client.receive(ApiKey.API_VERSIONS, 0)
        assert correlation_id == 5
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        (spoken,) = response.api_keys
        assert (spoken.api_key, spoken.min_version, spoken.max_version) == (18, 0, 5)
        assert not client.connection.is_closed

    scenario()


@on_a_loop
async def test_tagged_fields_in_a_header_are_skipped() -> None:
    seen = []

    async def note(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        seen.append((context.client_id, context.api_version, context.listener))
        return ListConfigResourcesResponse()

    client = Server({LIST: note}).connect()
    plain = frame(*ASK)[4:]
    header_end = 11  # before the number of tagged fields
    tagged = plain[:header_end] + b"\x01\x05\x03abc" + plain[header_end + 1 :]
    await client.send_bytes(len(tagged).to_bytes(4, "big") + tagged)
    await client.receive(LIST, 1)
    assert seen == [("k", 1, "PLAINTEXT")]


@on_a_loop
async def test_a_client_may_have_no_id() -> None:
    seen = []

    async def note(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        seen.append(context.client_id)
        return ListConfigResourcesResponse()

    client = Server({LIST: note}).connect()
    for client_id in (None, "", "a", None, "ä"):
        await client.send_bytes(frame(ListConfigResourcesRequest(), 1, 0, client_id))
        await client.receive(LIST, 1)
    assert seen == [None, "", "a", None, "ä"]


@on_a_loop
async def test_a_suspended_request_leaves_nothing_to_the_garbage_collector() -> None:
    calls: list[RequestContext] = []

    async def park(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        calls.append(context)
        await asyncio.sleep(0)
        return ListConfigResourcesResponse()

    client = Server({LIST: park}).connect()
    gc.disable()
    try:
        await client.send(ASK)
        await client.receive(LIST, 1)
        assert len(calls) == 1
        assert not [item for item in gc.get_referrers(*calls) if isinstance(item, SuspendedRequest)]
    finally:
        gc.enable()


@on_a_loop
async def test_requests_are_counted_by_version_and_timed() -> None:
    async def park_odd(
        _: ListConfigResourcesRequest, context: RequestContext
    ) -> ListConfigResourcesResponse:
        if context.correlation_id % 2:
            await asyncio.sleep(0)
        return ListConfigResourcesResponse()

    server = Server({LIST: park_odd})
    client = server.connect()
    for correlation_id, version in enumerate([0, 1, 1]):
        await client.send((ListConfigResourcesRequest(), version, correlation_id))
        await client.receive(LIST, version)
    metrics = server.broker.metrics.request("ListConfigResources")
    assert metrics.requests == {0: 1, 1: 2}
    assert metrics.local_ns.count == 3
    assert metrics.remote_ns.count == 1
    assert metrics.total_ns.count == metrics.response_send_ns.count == 3
    assert metrics.errors == {ErrorCode.NONE: 3}


@on_a_loop
async def test_regions_of_a_response_count_in_its_length() -> None:
    from barnabas.server.network.routes import RouteTable
    from barnabas.wire.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData

    class Region:
        size_bytes = 1000

    async def nothing(_: object, __: RequestContext) -> None:
        return None

    route = RouteTable(Server().broker.metrics, {ApiKey.FETCH: nothing}).resolve(1 << 16 | 12)
    out = Outgoing(b"before")
    partition = PartitionData(records=Region())
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])
    route.encode(response, 3, out)
    size = int.from_bytes(out[6:10], "big")
    assert size == len(out) - 6 - 4 + 1000
