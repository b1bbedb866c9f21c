"""A coordinator is found, remembered, and found again when it has moved."""

import asyncio
from typing import Any

import pytest
from tests.client.cluster.harness import a_cluster, code_of, soon
from tests.client.expected_errors import async_expect_error
from tests.client.scripted import HangUp, ScriptedBroker
from tests.server.harness import on_a_loop
from tests.wait import async_wait_until

from barnabas.client.cluster import ClusterClient, CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorResponse
from barnabas.wire.messages.groups import ListGroupsRequest, ListGroupsResponse

BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def beating(*codes: int) -> dict[ApiKey, Any]:
    """Answers to heartbeats, with these errors one after the other and none from then on."""
    left = list(codes)
    return {
        ApiKey.HEARTBEAT: lambda _: HeartbeatResponse(error_code=left.pop(0) if left else 0),
    }


async def beat(cluster: ClusterClient, deadline: Deadline | None = None) -> HeartbeatResponse:
    response: HeartbeatResponse = await cluster.send_to_coordinator(
        CoordinatorType.GROUP,
        "g",
        BEAT,
        lambda response: response.error_code,
        deadline=deadline or soon(),
    )
    return response


@on_a_loop
async def test_a_coordinator_is_found_once_and_cached() -> None:
    broker = ScriptedBroker(beating())
    async with a_cluster(broker) as cluster:
        for _ in range(3):
            assert (await beat(cluster)).error_code == 0
        assert len(broker.requests_of(ApiKey.FIND_COORDINATOR)) == 1
        assert await cluster.coordinator(CoordinatorType.GROUP, "g", soon()) == 1
        cluster.forget_coordinator(CoordinatorType.GROUP, "g")
        await cluster.coordinator(CoordinatorType.GROUP, "g", soon())
        assert len(broker.requests_of(ApiKey.FIND_COORDINATOR)) == 2


@on_a_loop
async def test_a_coordinator_that_moved_is_found_again() -> None:
    old = ScriptedBroker(beating(ErrorCode.NOT_COORDINATOR))
    new = ScriptedBroker(beating(), node_id=2)
    async with a_cluster(old, new) as cluster:
        moved = iter([old, new])

        def find(request: Any) -> FindCoordinatorResponse:
            return next(moved)._coordinator(request)

        old.handlers[ApiKey.FIND_COORDINATOR] = new.handlers[ApiKey.FIND_COORDINATOR] = find
        assert (await beat(cluster)).error_code == 0
        assert len(old.requests_of(ApiKey.HEARTBEAT)) == len(new.requests_of(ApiKey.HEARTBEAT)) == 1


@on_a_loop
async def test_a_loading_coordinator_is_retried_without_a_lookup() -> None:
    broker = ScriptedBroker(beating(*[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 3))
    async with a_cluster(broker) as cluster:
        assert (await beat(cluster)).error_code == 0
        assert len(broker.requests_of(ApiKey.HEARTBEAT)) == 4
        assert len(broker.requests_of(ApiKey.FIND_COORDINATOR)) == 1


@on_a_loop
async def test_a_coordinator_that_is_not_available_is_retried() -> None:
    broker = ScriptedBroker(beating())
    async with a_cluster(broker) as cluster:

        def find(request: Any) -> FindCoordinatorResponse:
            response = broker._coordinator(request)
            if len(broker.requests_of(ApiKey.FIND_COORDINATOR)) < 3:
                response.coordinators[0].error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            return response

        broker.handlers[ApiKey.FIND_COORDINATOR] = find
        assert await cluster.coordinator(CoordinatorType.GROUP, "g", soon()) == 1


@on_a_loop
async def test_a_lost_connection_to_the_coordinator_is_retried() -> None:
    broker = ScriptedBroker()
    async with a_cluster(broker) as cluster:

        def once(_: HeartbeatRequest) -> HeartbeatResponse:
            if len(broker.requests_of(ApiKey.HEARTBEAT)) == 1:
                raise HangUp
            return HeartbeatResponse()

        broker.handlers[ApiKey.HEARTBEAT] = once
        assert (await beat(cluster)).error_code == 0


@on_a_loop
async def test_other_errors_are_returned_to_the_caller() -> None:
    async with a_cluster(ScriptedBroker(beating(ErrorCode.ILLEGAL_GENERATION))) as cluster:
        assert (await beat(cluster)).error_code == ErrorCode.ILLEGAL_GENERATION


@on_a_loop
async def test_a_failed_lookup_is_retried() -> None:
    broker = ScriptedBroker(beating())
    lookups: list[Any] = []

    def silent_at_first(request: Any) -> Any:
        lookups.append(request)
        return broker._coordinator(request) if len(lookups) > 2 else None

    async with a_cluster(broker, request_timeout_ms=50) as cluster:
        broker.handlers[ApiKey.FIND_COORDINATOR] = silent_at_first
        assert (await beat(cluster, soon())).error_code == 0
        assert len(lookups) >= 3


@on_a_loop
async def test_the_timeout_error_has_the_last_error() -> None:
    broker = ScriptedBroker(beating(0, *[ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1000))
    async with a_cluster(broker) as cluster:
        await beat(cluster)  # the time is not for connecting
        failure = await async_expect_error(
            lambda timeout_s: beat(cluster, Deadline.after(timeout_s * 1000)), "loading"
        )
        assert failure.args[0] == KafkaError._TIMED_OUT
        assert failure.args[0].retriable()


@on_a_loop
async def test_an_error_that_is_not_retriable_is_raised_at_once() -> None:
    broker = ScriptedBroker(beating())
    async with a_cluster(broker) as cluster:

        def reject(request: Any) -> FindCoordinatorResponse:
            response = broker._coordinator(request)
            response.coordinators[0].error_code = ErrorCode.GROUP_AUTHORIZATION_FAILED
            return response

        broker.handlers[ApiKey.FIND_COORDINATOR] = reject
        with pytest.raises(KafkaException) as caught:
            await cluster.coordinator(CoordinatorType.GROUP, "g", soon())
        assert code_of(caught) == KafkaError.GROUP_AUTHORIZATION_FAILED


@on_a_loop
async def test_an_older_broker_gets_a_request_for_one_key() -> None:
    broker = ScriptedBroker(beating(), versions={ApiKey.FIND_COORDINATOR: (0, 2)})
    async with a_cluster(broker) as cluster:
        assert (await beat(cluster)).error_code == 0
        assert broker.requests_of(ApiKey.FIND_COORDINATOR)[0].key == "g"


@on_a_loop
async def test_a_slow_coordinator_request_blocks_no_other_request() -> None:
    gate = asyncio.Event()

    async def late(_: HeartbeatRequest) -> HeartbeatResponse:
        await gate.wait()
        return HeartbeatResponse()

    answers = {ApiKey.HEARTBEAT: late, ApiKey.LIST_GROUPS: lambda _: ListGroupsResponse()}
    broker = ScriptedBroker(answers)
    async with a_cluster(broker) as cluster:
        waiting = asyncio.ensure_future(beat(cluster))
        await async_wait_until(lambda: broker.requests_of(ApiKey.HEARTBEAT))
        await cluster.send_request(ListGroupsRequest(), to=1)
        gate.set()
        await waiting
