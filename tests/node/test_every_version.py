"""A node responds to every version of every API that it serves."""

from pathlib import Path
from typing import Any

import pytest
from tests.node.test_node import send_request
from tests.server.harness import on_a_loop

from barnabas.config import BrokerSettings
from barnabas.node import Node
from barnabas.node.format import format_new_directories, single_node_properties
from barnabas.server.api import HANDLERS
from barnabas.server.handlers import served_versions
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RequestPartitionData,
    RequestTopicData,
)
from barnabas.wire.messages.fetch import FetchPartition, FetchTopic
from barnabas.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from barnabas.wire.messages.metadata import (
    DescribeClusterRequest,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.wire.schema import Message

METADATA_LOG = [
    RequestTopicData(
        topic_name="__cluster_metadata", partitions=[RequestPartitionData(partition_index=0)]
    )
]


@pytest.fixture
def settings(tmp_path: Path) -> BrokerSettings:
    settings = BrokerSettings.from_properties(single_node_properties("127.0.0.1", 0, tmp_path))
    format_new_directories(settings)
    return settings


@on_a_loop
async def test_a_node_responds_to_every_version_of_every_api(
    settings: BrokerSettings, caplog: pytest.LogCaptureFixture
) -> None:
    node = await Node.start(settings)
    await send_request(node, _naming("hello"), 12)  # which creates it
    for key in HANDLERS:
        for version in served_versions(key):
            response = await send_request(node, _request(key), version)
            assert getattr(response, "error_code", 0) != ErrorCode.UNSUPPORTED_VERSION, (
                key,
                version,
            )
    await node.stop()
    assert [line for line in caplog.messages if "Cannot encode" in line] == []


@on_a_loop
async def test_every_version_of_describe_quorum_describes_the_quorum(
    settings: BrokerSettings,
) -> None:
    node = await Node.start(settings)
    for version in served_versions(ApiKey.DESCRIBE_QUORUM):
        response = await send_request(node, DescribeQuorumRequest(topics=METADATA_LOG), version)
        assert isinstance(response, DescribeQuorumResponse)
        (partition,) = response.topics[0].partitions
        assert (partition.leader_id, partition.error_code) == (1, ErrorCode.NONE)
        assert [voter.replica_id for voter in partition.current_voters] == [1]
        assert [node.node_id for node in response.nodes] == ([1] if version >= 2 else [])
    await node.stop()


@on_a_loop
async def test_describe_cluster_checks_the_endpoint_type(settings: BrokerSettings) -> None:
    node = await Node.start(settings)
    codes = {}
    for endpoint_type in (0, 1, 2, 3):
        response: Any = await send_request(
            node, DescribeClusterRequest(endpoint_type=endpoint_type), 1
        )
        codes[endpoint_type] = ErrorCode.of(response.error_code)
    await node.stop()
    assert codes == {
        0: ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
        1: ErrorCode.NONE,
        2: ErrorCode.MISMATCHED_ENDPOINT_TYPE,
        3: ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
    }


@on_a_loop
async def test_a_topic_that_is_requested_twice_is_returned_once(settings: BrokerSettings) -> None:
    node = await Node.start(settings)
    response = await send_request(node, _naming("hello", "hello", "no such!", "no such!"), 12)
    await node.stop()
    assert isinstance(response, MetadataResponse)
    assert [topic.name for topic in response.topics] == ["hello", "no such!"]


def _naming(*topics: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in topics])


def _request(key: ApiKey) -> Message:
    """Returns a request with content where an empty one would hide a bug."""
    request: Any = api(key).request()
    match key:
        case ApiKey.PRODUCE:
            request.acks = 1
        case ApiKey.API_VERSIONS:
            request.client_software_name = request.client_software_version = "test"
        case ApiKey.METADATA:
            request.topics = _naming("hello").topics
        case ApiKey.FETCH:
            partition = FetchPartition(partition=0, partition_max_bytes=1000)
            request.topics = [FetchTopic(topic="hello", partitions=[partition])]
        case ApiKey.LIST_OFFSETS:
            partition = ListOffsetsPartition(partition_index=0, timestamp=-1)
            request.topics = [ListOffsetsTopic(name="hello", partitions=[partition])]
        case ApiKey.DESCRIBE_QUORUM:
            request.topics = METADATA_LOG
    return request
