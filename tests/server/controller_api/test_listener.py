"""A controller's listener serves what Kafka's serves, and nothing else."""

import asyncio
from typing import Any

import pytest
from tests.server.controller_api.house import House
from tests.server.harness import on_a_loop, turns

from barnabas.metadata.features import METADATA_VERSION
from barnabas.server.controller_api import FORWARDABLE, HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest

OF_SECURITY_AND_QUOTAS = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.ALTER_CLIENT_QUOTAS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
}


def test_it_serves_what_kafka_serves_but_for_security_and_quotas() -> None:
    kafkas = {key for key in ApiKey if key not in _RETIRED and "controller" in api(key).listeners}
    assert set(HANDLERS) == kafkas - OF_SECURITY_AND_QUOTAS - {ApiKey.UNREGISTER_CONTROLLER}
    assert set(HANDLERS) >= FORWARDABLE


_RETIRED = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}


@on_a_loop
async def test_apiversions_tells_what_is_served_here() -> None:
    house = House()
    house.node.image.features[METADATA_VERSION] = 25
    asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = await house.ask(asked, 4)
    told = {ApiKey(a.api_key): (a.min_version, a.max_version) for a in response.api_keys}
    assert told == {k: (served_versions(k).min, served_versions(k).max) for k in HANDLERS}
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert finalized == {"kraft.version": 1, METADATA_VERSION: 25}


@on_a_loop
async def test_what_only_brokers_serve_ends_the_connection() -> None:
    client = House().connect()
    await client.send((MetadataRequest(topics=None), 12, 1))
    assert await client.is_closed()


@on_a_loop
async def test_every_version_of_every_api_is_answered() -> None:
    house = House()
    for key in sorted(set(HANDLERS) - {ApiKey.DESCRIBE_CONFIGS}):
        for version in served_versions(key):
            request: Any = api(key).request()
            if key is ApiKey.API_VERSIONS:
                request.client_software_name = request.client_software_version = "test"
            answer = await house.ask(request, version)
            assert key == answer.API_KEY


@on_a_loop
async def test_what_is_decided_gets_the_time_that_its_client_allows() -> None:
    house = House()
    await house.ask(CreateTopicsRequest(timeout_ms=1234), 7)
    ((request, timeout_ms),) = house.controller.asked
    assert isinstance(request, CreateTopicsRequest)
    assert timeout_ms == 1234


@on_a_loop
async def test_a_standby_says_so() -> None:
    house = House()
    house.controller.is_active = False
    response = await house.ask(CreateTopicsRequest(topics=[CreatableTopic(name="t")]), 7)
    assert response.topics[0].error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_topics_are_not_deleted_where_settings_forbid_it(version: int, code: ErrorCode) -> None:
    @on_a_loop
    async def scenario() -> None:
        house = House(**{"delete.topic.enable": False})
        topics = (
            {"topics": [DeleteTopicState(name="t")]} if version == 6 else {"topic_names": ["t"]}
        )
        response = await house.ask(DeleteTopicsRequest(**topics), version)
        assert response.responses[0].error_code == code
        assert house.controller.asked == []

    scenario()


@on_a_loop
async def test_loggers_are_changed_here_and_all_else_is_decided() -> None:
    house = House()
    kinds = [(8, "4"), (4, "3")]
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=t, resource_name=n) for t, n in kinds]
    )
    response = await house.ask(request, 1)
    assert [each.error_code for each in response.responses] == [ErrorCode.INVALID_REQUEST]
    ((asked, _),) = house.controller.asked
    assert [each.resource_name for each in asked.resources] == ["3"]  # type: ignore[attr-defined]


# The quorum


@on_a_loop
async def test_the_members_of_the_quorum_are_answered_by_it() -> None:
    house = House()
    keys = {
        ApiKey.VOTE: ("vote", 2),
        ApiKey.BEGIN_QUORUM_EPOCH: ("begin_epoch", 1),
        ApiKey.END_QUORUM_EPOCH: ("end_epoch", 1),
        ApiKey.FETCH_SNAPSHOT: ("fetch_snapshot", 1),
        ApiKey.FETCH: ("fetch", 18),
        ApiKey.ADD_RAFT_VOTER: ("add_voter",),
        ApiKey.REMOVE_RAFT_VOTER: ("remove_voter",),
        ApiKey.UPDATE_RAFT_VOTER: ("update_voter",),
    }
    for key in keys:
        await house.ask(api(key).request(), served_versions(key).max)
    assert house.quorum.asked == list(keys.values())


@on_a_loop
async def test_a_fetch_may_wait() -> None:
    house = House()
    house.quorum.fetching = asyncio.get_running_loop().create_future()
    waiting = asyncio.ensure_future(house.ask(FetchRequest(), 17))
    await turns()
    assert not waiting.done()
    house.quorum.fetching.set_result(FetchResponse(session_id=5))
    assert (await waiting).session_id == 5


def of(*names: str, index: int = 0) -> DescribeQuorumRequest:
    partition = RequestPartitionData(partition_index=index)
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name=name, partitions=[partition]) for name in names]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_leader_tells_how_far_every_replica_has_come(version: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await House().ask(of("__cluster_metadata"), version)
        (partition,) = response.topics[0].partitions
        assert (partition.leader_id, partition.leader_epoch, partition.high_watermark) == (3, 7, 99)
        (voter,) = partition.current_voters
        (observer,) = partition.observers
        assert (voter.replica_id, voter.log_end_offset) == (3, 100)
        assert (observer.replica_id, observer.log_end_offset) == (4, 90)
        caught_up_ms = 3000 if version >= 1 else -1
        assert observer.last_caught_up_timestamp == caught_up_ms
        nodes = [(node.node_id, node.listeners[0].host) for node in response.nodes]
        assert nodes == ([(3, "10.0.0.3")] if version >= 2 else [])
        assert voter.replica_directory_id == (b"3" if version >= 2 else b"\0") * 16

    scenario()


@on_a_loop
async def test_a_follower_does_not_describe_the_quorum() -> None:
    house = House()
    house.quorum.is_leader = False
    response = await house.ask(of("__cluster_metadata"), 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "request_",
    [of("orders"), of("__cluster_metadata", index=1), of("__cluster_metadata", "orders")],
    ids=["another topic", "another partition", "more than that"],
)
def test_the_quorum_keeps_one_partition_only(request_: DescribeQuorumRequest) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await House().ask(request_, 2)
        for topic in response.topics:
            (partition,) = topic.partitions
            assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert (partition.leader_id, partition.current_voters) == (0, [])

    scenario()


# The cluster (KIP-919)


@on_a_loop
async def test_the_controllers_of_this_listener_are_told() -> None:
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    response = await House().ask(request, 2)
    assert response.error_code == ErrorCode.NONE
    assert (response.endpoint_type, response.cluster_id) == (2, "castle")
    assert response.controller_id == 3
    assert [(each.broker_id, each.host) for each in response.brokers] == [
        (3, "10.0.0.3"),
        (4, "10.0.0.4"),
    ]
    assert response.cluster_authorized_operations == 8096


@on_a_loop
async def test_while_nobody_leads_there_is_no_controller() -> None:
    house = House()
    house.quorum.leader = None
    assert (await house.ask(DescribeClusterRequest(endpoint_type=2), 1)).controller_id == -1


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_brokers_are_not_told_here(endpoint_type: int, code: ErrorCode) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await House().ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
        assert response.error_code == code
        assert response.brokers == []

    scenario()
