"""A controller's listener serves what Kafka's serves, and nothing else."""

import asyncio
from typing import Any

import pytest
from tests.server.controller_api.fake_controller import FakeControllerListener
from tests.server.harness import on_a_loop, turns

from barnabas.metadata.features import METADATA_VERSION
from barnabas.server.controller_api import FORWARDABLE, HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import DescribeClusterRequest, MetadataRequest
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

DECLARED_ONLY = {
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.UNREGISTER_CONTROLLER,
}
"""Kafka's messages name the controller for them, but its controllers do not serve them."""


def test_a_controller_serves_what_kafkas_does() -> None:
    kafkas = {key for key in ApiKey if key not in _RETIRED and "controller" in api(key).listeners}
    assert set(HANDLERS) == kafkas - DECLARED_ONLY
    assert set(HANDLERS) >= FORWARDABLE


_RETIRED = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}


@on_a_loop
async def test_api_versions_returns_what_the_controller_serves() -> None:
    listener = FakeControllerListener()
    listener.node.image.features[METADATA_VERSION] = 25
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = await listener.request(request, 4)
    reported = {ApiKey(a.api_key): (a.min_version, a.max_version) for a in response.api_keys}
    assert reported == {k: (served_versions(k).min, served_versions(k).max) for k in HANDLERS}
    finalized = {item.name: item.max_version_level for item in response.finalized_features}
    assert finalized == {"kraft.version": 1, METADATA_VERSION: 25}


@on_a_loop
async def test_a_request_that_only_brokers_serve_closes_the_connection() -> None:
    client = FakeControllerListener().connect()
    await client.send((MetadataRequest(topics=None), 12, 1))
    assert await client.is_closed()


@on_a_loop
async def test_every_version_of_every_api_receives_a_response() -> None:
    listener = FakeControllerListener()
    for key in sorted(set(HANDLERS) - {ApiKey.DESCRIBE_CONFIGS}):
        for version in served_versions(key):
            request: Any = api(key).request()
            if key is ApiKey.API_VERSIONS:
                request.client_software_name = request.client_software_version = "test"
            response = await listener.request(request, version)
            assert key == response.API_KEY


@on_a_loop
async def test_requests_to_the_controller_have_the_timeout_of_their_client() -> None:
    listener = FakeControllerListener()
    await listener.request(CreateTopicsRequest(timeout_ms=1234), 7)
    ((request, timeout_ms),) = listener.controller.requests
    assert isinstance(request, CreateTopicsRequest)
    assert timeout_ms == 1234


@on_a_loop
async def test_an_inactive_controller_returns_not_controller() -> None:
    listener = FakeControllerListener()
    listener.controller.is_active = False
    response = await listener.request(CreateTopicsRequest(topics=[CreatableTopic(name="t")]), 7)
    assert response.topics[0].error_code == ErrorCode.NOT_CONTROLLER


@pytest.mark.parametrize(
    ("version", "code"),
    [(2, ErrorCode.INVALID_REQUEST), (6, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_topics_are_not_deleted_if_settings_forbid_it(version: int, code: ErrorCode) -> None:
    @on_a_loop
    async def scenario() -> None:
        listener = FakeControllerListener(**{"delete.topic.enable": False})
        topics = (
            {"topics": [DeleteTopicState(name="t")]} if version == 6 else {"topic_names": ["t"]}
        )
        response = await listener.request(DeleteTopicsRequest(**topics), version)
        assert response.responses[0].error_code == code
        assert listener.controller.requests == []

    scenario()


@on_a_loop
async def test_a_controller_changes_its_own_loggers_and_decides_all_else() -> None:
    listener = FakeControllerListener()
    kinds = [(8, "4"), (4, "3")]
    request = IncrementalAlterConfigsRequest(
        resources=[
            IncrementalAlterConfigsResource(resource_type=t, resource_name=n) for t, n in kinds
        ]
    )
    response = await listener.request(request, 1)
    assert [item.error_code for item in response.responses] == [ErrorCode.INVALID_REQUEST]
    ((sent_request, _),) = listener.controller.requests
    assert [item.resource_name for item in sent_request.resources] == ["3"]  # type: ignore[attr-defined]


# The quorum


@on_a_loop
async def test_requests_of_the_quorum_are_handled_by_it() -> None:
    listener = FakeControllerListener()
    versions = {
        ApiKey.VOTE: 2,
        ApiKey.BEGIN_QUORUM_EPOCH: 1,
        ApiKey.END_QUORUM_EPOCH: 1,
        ApiKey.FETCH_SNAPSHOT: 1,
        ApiKey.FETCH: 18,
        ApiKey.ADD_RAFT_VOTER: 1,
        ApiKey.REMOVE_RAFT_VOTER: 0,
        ApiKey.UPDATE_RAFT_VOTER: 0,
    }
    for key in versions:
        await listener.request(api(key).request(), served_versions(key).max)
    assert listener.quorum.requests == list(versions.items())


@on_a_loop
async def test_a_quorum_fetch_may_be_delayed() -> None:
    listener = FakeControllerListener()
    listener.quorum.fetching = asyncio.get_running_loop().create_future()
    pending = asyncio.ensure_future(listener.request(FetchRequest(), 17))
    await turns()
    assert not pending.done()
    listener.quorum.fetching.set_result(FetchResponse(session_id=5))
    assert (await pending).session_id == 5


def of(*names: str, index: int = 0) -> DescribeQuorumRequest:
    partition = RequestPartitionData(partition_index=index)
    return DescribeQuorumRequest(
        topics=[RequestTopicData(topic_name=name, partitions=[partition]) for name in names]
    )


@pytest.mark.parametrize("version", range(3))
def test_the_leader_describes_the_offsets_of_every_replica(version: int) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await FakeControllerListener().request(of("__cluster_metadata"), version)
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
    listener = FakeControllerListener()
    listener.quorum.is_leader = False
    response = await listener.request(of("__cluster_metadata"), 2)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    "request_",
    [of("orders"), of("__cluster_metadata", index=1), of("__cluster_metadata", "orders")],
    ids=["another topic", "another partition", "more than that"],
)
def test_only_the_metadata_partition_can_be_described(request_: DescribeQuorumRequest) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await FakeControllerListener().request(request_, 2)
        for topic in response.topics:
            (partition,) = topic.partitions
            assert partition.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert (partition.leader_id, partition.current_voters) == (0, [])

    scenario()


# The cluster (KIP-919)


@on_a_loop
async def test_a_controller_describes_the_controllers_of_its_listener() -> None:
    request = DescribeClusterRequest(endpoint_type=2, include_cluster_authorized_operations=True)
    response = await FakeControllerListener().request(request, 2)
    assert response.error_code == ErrorCode.NONE
    assert (response.endpoint_type, response.cluster_id) == (2, "castle")
    assert response.controller_id == 3
    assert [(item.broker_id, item.host) for item in response.brokers] == [
        (3, "10.0.0.3"),
        (4, "10.0.0.4"),
    ]
    assert response.cluster_authorized_operations == 8096


@on_a_loop
async def test_without_a_quorum_leader_there_is_no_controller() -> None:
    listener = FakeControllerListener()
    listener.quorum.leader = None
    assert (await listener.request(DescribeClusterRequest(endpoint_type=2), 1)).controller_id == -1


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (1, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_a_controller_does_not_describe_brokers(endpoint_type: int, code: ErrorCode) -> None:
    @on_a_loop
    async def scenario() -> None:
        response = await FakeControllerListener().request(
            DescribeClusterRequest(endpoint_type=endpoint_type), 1
        )
        assert response.error_code == code
        assert response.brokers == []

    scenario()
