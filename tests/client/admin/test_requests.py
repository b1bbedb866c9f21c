"""Requests reach the responsible nodes, few of them, and retriable errors are retried."""

import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.expected_errors import TIMEOUTS_S
from tests.client.scripted import HOST, HangUp, ScriptedBroker, metadata_of, settings_of
from tests.server.harness import on_a_loop

from barnabas import ConsumerGroupTopicPartitions, TopicPartition
from barnabas.admin import (
    AclBindingFilter,
    ClientQuotaFilter,
    KafkaError,
    KafkaException,
    NewTopic,
    OffsetSpec,
)
from barnabas.client.admin import AioAdminClient
from barnabas.client.settings import AdminSettings
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from barnabas.wire.messages.group_offsets import OffsetFetchResponse, OffsetFetchResponseGroup
from barnabas.wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsResponse,
    ListedGroup,
    ListGroupsResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.metadata import DescribeClusterBroker, DescribeClusterResponse
from barnabas.wire.messages.topics import CreatableTopicResult, CreateTopicsResponse


@asynccontextmanager
async def administered(
    *brokers: ScriptedBroker, default_api_timeout_ms: float = 30_000
) -> AsyncIterator[AioAdminClient]:
    """An admin client of these, which know of each other."""
    for broker in brokers:
        broker.handlers[ApiKey.METADATA] = lambda request: metadata_of(brokers, request)
        await broker.start()
    connection = settings_of(brokers, default_api_timeout_ms=int(default_api_timeout_ms))
    fields = {each.name: getattr(connection, each.name) for each in dataclasses.fields(connection)}
    try:
        async with AioAdminClient(AdminSettings(**fields)) as admin:
            yield admin
    finally:
        for broker in brokers:
            await broker.stop()


def in_turn(*answers: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Answers one after the other; the last one goes on."""
    left = list(answers)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def ends(code: int = 0) -> Callable[[Any], ListOffsetsResponse]:
    """Every partition ends at its number, or has an error."""
    return lambda request: ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index,
                        error_code=code,
                        offset=each.partition_index,
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def deleted(request: Any) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group) for group in request.groups_names]
    )


def created(code: int = 0) -> Callable[[Any], CreateTopicsResponse]:
    return lambda request: CreateTopicsResponse(
        topics=[
            CreatableTopicResult(name=topic.name, error_code=code, error_message=None, configs=None)
            for topic in request.topics
        ]
    )


def hang_up(_: Any) -> None:
    raise HangUp


def latest(topic: str, count: int) -> dict[TopicPartition, OffsetSpec]:
    return {TopicPartition(topic, index): OffsetSpec.latest() for index in range(count)}


@on_a_loop
async def test_each_leader_gets_one_request_for_all_its_partitions() -> None:
    first = ScriptedBroker({ApiKey.LIST_OFFSETS: ends()}, node_id=1, topics={"a": 500})
    second = ScriptedBroker({ApiKey.LIST_OFFSETS: ends()}, node_id=2, topics={"b": 500})
    async with administered(first, second) as admin:
        found = await admin.list_offsets(latest("a", 500) | latest("b", 500))
        assert [each.offset for each in found.all().values()] == [*range(500), *range(500)]
        for broker in first, second:
            assert len(broker.requests_of(ApiKey.LIST_OFFSETS)) == 1


@on_a_loop
async def test_a_leader_that_moved_is_found_again() -> None:
    moved = in_turn(ends(ErrorCode.NOT_LEADER_OR_FOLLOWER), ends())
    async with administered(ScriptedBroker({ApiKey.LIST_OFFSETS: moved}, topics={"a": 2})) as admin:
        assert len((await admin.list_offsets(latest("a", 2))).all()) == 2


@on_a_loop
async def test_only_failed_items_are_sent_again() -> None:
    def half(request: Any) -> ListOffsetsResponse:
        response = ends()(request)
        response.topics[0].partitions[0].error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return response

    broker = ScriptedBroker({ApiKey.LIST_OFFSETS: in_turn(half, ends())}, topics={"a": 3})
    async with administered(broker) as admin:
        found = await admin.list_offsets(latest("a", 3))
        assert list(found) == list(latest("a", 3))
        again = broker.requests_of(ApiKey.LIST_OFFSETS)[1].topics[0].partitions
        assert [each.partition_index for each in again] == [0]


@on_a_loop
async def test_results_remain_when_brokers_stop_responding() -> None:
    def half(request: Any) -> ListOffsetsResponse:
        broker.handlers[ApiKey.METADATA] = hang_up
        response = ends()(request)
        response.topics[0].partitions[0].error_code = ErrorCode.LEADER_NOT_AVAILABLE
        return response

    broker = ScriptedBroker({ApiKey.LIST_OFFSETS: half}, topics={"a": 2})
    moving, settled = latest("a", 2)
    for timeout_s in TIMEOUTS_S:
        async with administered(broker, default_api_timeout_ms=1000 * timeout_s) as admin:
            found = await admin.list_offsets(latest("a", 2))
        if settled not in found.errors:
            break
    assert list(found.errors) == [moving]
    assert found[settled].offset == 1


@on_a_loop
async def test_a_timeout_names_the_last_error() -> None:
    stuck = ScriptedBroker(
        {ApiKey.LIST_OFFSETS: ends(ErrorCode.NOT_LEADER_OR_FOLLOWER)}, topics={"a": 1}
    )
    for timeout_s in TIMEOUTS_S:
        async with administered(stuck, default_api_timeout_ms=1000 * timeout_s) as admin:
            found = await admin.list_offsets(latest("a", 1))
        (error,) = found.errors.values()
        assert error == KafkaError._TIMED_OUT
        if "the last failure was" in error.str():
            return
    raise AssertionError(error.str())


@on_a_loop
async def test_a_thousand_groups_take_one_lookup_and_one_request_per_coordinator() -> None:
    brokers = [ScriptedBroker({ApiKey.DELETE_GROUPS: deleted}, node_id=each) for each in (1, 2)]

    def found(request: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=brokers[int(key) % 2].node_id,
                    host=HOST,
                    port=brokers[int(key) % 2].port,
                    error_code=0,
                    error_message=None,
                )
                for key in request.coordinator_keys
            ]
        )

    for broker in brokers:
        broker.handlers[ApiKey.FIND_COORDINATOR] = found
    async with administered(*brokers) as admin:
        groups = [str(number) for number in range(1000)]
        assert list((await admin.delete_consumer_groups(groups)).all()) == groups
        searches = [len(broker.requests_of(ApiKey.FIND_COORDINATOR)) for broker in brokers]
        assert sum(searches) == 1
        assert [len(broker.requests_of(ApiKey.DELETE_GROUPS)) for broker in brokers] == [1, 1]


@on_a_loop
async def test_a_coordinator_that_is_loading_is_retried() -> None:
    def loading(request: Any) -> OffsetFetchResponse:
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=each.group_id, topics=[], error_code=code)
                for each in request.groups
            ]
        )

    def ready(request: Any) -> OffsetFetchResponse:
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponseGroup(group_id=each.group_id, topics=[])
                for each in request.groups
            ]
        )

    broker = ScriptedBroker({ApiKey.OFFSET_FETCH: in_turn(loading, hang_up, ready)})
    async with administered(broker) as admin:
        results = await admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")])
        assert results["g"].topic_partitions == []
        versions = {each.version for each in broker.received if each.key == ApiKey.OFFSET_FETCH}
        assert versions == {9}, "the last version that knows topics by their names"


@on_a_loop
async def test_a_controller_that_moved_is_found_by_the_retry() -> None:
    answers = in_turn(created(ErrorCode.NOT_CONTROLLER), created())
    async with administered(ScriptedBroker({ApiKey.CREATE_TOPICS: answers})) as admin:
        assert (await admin.create_topics([NewTopic("a", 1, 1)])).all() == {"a": None}


@on_a_loop
async def test_requests_go_to_the_active_one_of_several_controllers() -> None:
    follower = ScriptedBroker({ApiKey.CREATE_TOPICS: created(ErrorCode.NOT_CONTROLLER)}, node_id=1)
    leader = ScriptedBroker({ApiKey.CREATE_TOPICS: created()}, node_id=2)
    both = [follower, leader]
    for controller in both:
        del controller.handlers[ApiKey.METADATA]
        controller.handlers[ApiKey.DESCRIBE_CLUSTER] = lambda request: DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id="castle",
            controller_id=leader.node_id,
            brokers=[
                DescribeClusterBroker(broker_id=each.node_id, host=HOST, port=each.port)
                for each in both
            ],
        )
        await controller.start()
    settings = AdminSettings(bootstrap_controllers=(follower.endpoint,), retry_backoff_ms=5)
    async with AioAdminClient(settings) as admin:
        for number in range(3):
            (await admin.create_topics([NewTopic(f"t{number}", 1, 1)])).all()
        assert len(follower.requests_of(ApiKey.CREATE_TOPICS)) <= 2
        assert [node.id for node in (await admin.describe_cluster()).nodes] == [1, 2]
    for controller in both:
        await controller.stop()


@on_a_loop
async def test_a_non_retriable_error_is_returned_at_once() -> None:
    broker = ScriptedBroker({ApiKey.CREATE_TOPICS: created(ErrorCode.POLICY_VIOLATION)})
    async with administered(broker) as admin:
        results = await admin.create_topics([NewTopic("a", 1, 1)])
        assert results.errors == {"a": KafkaError(KafkaError.POLICY_VIOLATION)}
        with pytest.raises(KafkaException):
            results.all()
        assert len(broker.requests_of(ApiKey.CREATE_TOPICS)) == 1


@on_a_loop
async def test_groups_are_listed_although_a_broker_does_not_respond() -> None:
    def listed(_: Any) -> ListGroupsResponse:
        group = ListedGroup(group_id="g", protocol_type="consumer", group_state="Stable")
        other = ListedGroup(group_id="connect", protocol_type="connect")
        return ListGroupsResponse(groups=[group, other])

    well = ScriptedBroker({ApiKey.LIST_GROUPS: listed}, node_id=1)
    ill = ScriptedBroker({ApiKey.LIST_GROUPS: hang_up}, node_id=2)
    async with administered(well, ill) as admin:
        result = await admin.list_consumer_groups()
        assert [group.group_id for group in result.valid] == ["g"]
        (failure,) = result.errors
        assert failure.args[0] == KafkaError._TRANSPORT


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.describe_client_quotas(ClientQuotaFilter.all()),
        lambda admin: admin.describe_acls(
            AclBindingFilter("any", None, "any", None, None, "any", "any")
        ),
        lambda admin: admin.describe_user_scram_credentials(),
        lambda admin: admin.describe_metadata_quorum(),
    ],
)
@on_a_loop
async def test_an_api_that_is_not_served_fails_at_once(call: Any) -> None:
    async with administered(ScriptedBroker()) as admin:
        with pytest.raises(KafkaException) as raised:
            await call(admin)
        error = raised.value.args[0]
        assert error == KafkaError._UNSUPPORTED_FEATURE
        assert "does not serve" in error.str()
