"""A whole node in this process serves, stops, and starts again on its directories."""

import asyncio
from pathlib import Path

import pytest
from tests.server.harness import frame, on_a_loop

from barnabas.config import BrokerSettings
from barnabas.log import LogDirectory
from barnabas.metadata.frames import encode_record
from barnabas.node import Node, NodeError
from barnabas.node.format import (
    QuorumBootstrap,
    format_new_directories,
    format_storage,
    single_node_properties,
)
from barnabas.raft import CommittedBatch
from barnabas.server.api import HANDLERS
from barnabas.wire.apis import ApiKey, api
from barnabas.wire.headers import read_response_header
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.metadata_records import (
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.schema import Message

TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
"""Not advertised without a subscription."""


@pytest.fixture
def settings(tmp_path: Path) -> BrokerSettings:
    properties = single_node_properties("127.0.0.1", 0, tmp_path / "data")
    properties["barnabas.metrics.listener"] = "127.0.0.1:0"
    settings = BrokerSettings.from_properties(properties)
    format_new_directories(settings)
    return settings


@on_a_loop
async def test_a_restarted_node_has_its_topics(settings: BrokerSettings) -> None:
    node = await Node.start(settings)
    client = ApiVersionsRequest(client_software_name="a-test", client_software_version="1")
    versions = await send_request(node, client, 3)
    assert isinstance(versions, ApiVersionsResponse)
    assert {api_version.api_key for api_version in versions.api_keys} == {
        key.value for key in HANDLERS.keys() - TELEMETRY
    }
    topic = CreatableTopic(name="hello", num_partitions=2, replication_factor=1)
    created = await send_request(node, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    assert isinstance(created, CreateTopicsResponse)
    await node.stop()

    again = await Node.start(settings)
    metadata = await send_request(again, MetadataRequest(topics=None), 12)
    await again.stop()
    assert isinstance(metadata, MetadataResponse)
    assert metadata.cluster_id == node.broker.cluster_id
    (restored,) = metadata.topics
    assert (restored.name, restored.topic_id) == ("hello", created.topics[0].topic_id)
    assert [partition.leader_id for partition in restored.partitions] == [1, 1]


@on_a_loop
async def test_a_clean_shutdown_writes_the_broker_epoch(
    settings: BrokerSettings,
) -> None:
    node = await Node.start(settings)
    await node.stop()
    directory = LogDirectory.open(settings.log_dirs[0])
    assert directory.was_clean_shutdown
    assert directory.previous_broker_epoch > 0
    directory.close()


@on_a_loop
async def test_a_node_reports_the_address_of_its_metrics(settings: BrokerSettings) -> None:
    node = await Node.start(settings)
    assert node.metrics_address is not None
    host, _, port = node.metrics_address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    response = await reader.read()
    writer.close()
    await node.stop()
    assert response.startswith(b"HTTP/1.1 200 OK")


@on_a_loop
async def test_a_node_that_cannot_start_releases_its_directories(
    settings: BrokerSettings,
) -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as taken:
        port = taken.sockets[0].getsockname()[1]
        properties = {**settings.explicit, "barnabas.metrics.listener": f"127.0.0.1:{port}"}
        with pytest.raises(NodeError, match="stop what listens there"):
            await Node.start(BrokerSettings.from_properties(properties))
    await (await Node.start(settings)).stop()


@on_a_loop
async def test_a_broker_that_reaches_no_controller_raises_and_releases_its_directories(
    tmp_path: Path,
) -> None:
    settings = BrokerSettings.from_properties(
        {
            "process.roles": "broker",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "127.0.0.1:1",
            "log.dirs": str(tmp_path / "data"),
            "initial.broker.registration.timeout.ms": "0",
        }
    )
    format_storage(settings, cluster_id="castle", quorum=QuorumBootstrap.FROM_SETTINGS)
    with pytest.raises(NodeError, match="a majority of the controllers running"):
        await Node.start(settings)
    LogDirectory.open(settings.log_dirs[0]).close()


@on_a_loop
async def test_a_broker_whose_id_another_process_has_registered_stops(
    settings: BrokerSettings,
) -> None:
    """It was paused until its session expired. The metadata for its id applies to the other
    process: if both led in one epoch, one would acknowledge records that the other never had."""
    node = await Node.start(settings)
    registration = node.metadata.image.brokers[1]
    other = RegisterBrokerRecord(
        broker_id=1,
        broker_epoch=registration.epoch + 1,
        incarnation_id=b"another process!",
        fenced=False,
        log_dirs=list(registration.log_dirs),
    )
    topic = TopicRecord(name="orders", topic_id=b"orders".ljust(16))
    led = PartitionRecord(topic_id=topic.topic_id, partition_id=0, replicas=[1], isr=[1], leader=1)
    frames = [encode_record(record, record.VERSIONS.max) for record in (other, topic, led)]
    node.metadata.apply([CommittedBatch(registration.epoch + 1_000, 1, 0, frames)])
    with pytest.raises(NodeError, match="Another process is registered as broker 1"):
        await node.run_until(asyncio.Event())
    assert node.broker.partitions.opened() == []
    node._abandon()


async def send_request(node: Node, request: Message, version: int) -> Message:
    """Sends one request on a connection of its own."""
    host, _, port = node.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(frame(request, version))
    length = int.from_bytes(await reader.readexactly(4), "big")
    response = await reader.readexactly(length)
    writer.close()
    key = ApiKey(request.API_KEY)
    _, body = read_response_header(response, key, version)
    return api(key).response.read_exactly(response, version, body)


@on_a_loop
async def test_a_failed_start_keeps_the_mark_of_the_clean_shutdown(
    settings: BrokerSettings,
) -> None:
    node = await Node.start(settings)
    await node.stop()
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as taken:
        port = taken.sockets[0].getsockname()[1]
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:0"
        with pytest.raises(NodeError):
            await Node.start(
                BrokerSettings.from_properties({**settings.explicit, "listeners": listeners})
            )
    directory = LogDirectory.open(settings.log_dirs[0])
    assert directory.was_clean_shutdown
    directory.close()
