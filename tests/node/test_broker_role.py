"""A broker that comes back: what it believes before it has heard what happened meanwhile."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.replication.world import batch_of, id_of, topic_records
from tests.server.harness import on_a_loop

from barnabas.config import BrokerSettings, Resolver
from barnabas.log import Log
from barnabas.metadata.frames import encode_record
from barnabas.node.single_node import single_node_properties
from barnabas.node.broker_role import BrokerRole
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.format import format_new_directories
from barnabas.node.storage import NodeStorage
from barnabas.node.environment import Environment
from barnabas.raft import CommittedBatch
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from barnabas.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.validate import ValidBatch
from barnabas.wire.schema import Message


@pytest.fixture
def settings(tmp_path: Path) -> BrokerSettings:
    settings = BrokerSettings.from_properties(
        single_node_properties("127.0.0.1", 0, tmp_path / "data")
    )
    format_new_directories(settings)
    return settings


@pytest.mark.parametrize("topic", ["orders", "__consumer_offsets"])
@pytest.mark.parametrize("changes", [0, 1])
@on_a_loop
async def test_who_led_long_ago_is_not_believed_by_one_that_comes_back(
    settings: BrokerSettings, topic: str, changes: int
) -> None:
    """It led once, and has followed others since. To lead again, if only until more of the
    metadata comes, would make it forget where their epochs began."""
    storage = NodeStorage(settings)
    topic_id = id_of(topic)
    log = storage.directories[0].create_log(topic, 0, topic_id)
    for epoch in (0, 3, 7):
        append(log, epoch)
    epochs = log.leader_epochs.entries
    log.close()
    storage.directories[0].on_log_closed(log)
    metadata = ClusterMetadata()
    side = a_side(settings, storage, metadata)

    led_here = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1)
    led_there = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
    made = topic_records(topic, replicas=(1, 2))
    metadata.apply([committed(2, [*made, *[led_here] * changes])])
    for _ in range(5):
        await asyncio.sleep(0)  # a coordinator would load what it leads
    metadata.apply([committed(10, [led_there] * 7)])

    assert side.partitions.get(topic_id, 0).log.leader_epochs.entries == epochs
    storage.abandon()


class LetsIn:
    """A controller that registers a broker and lets it in, before the broker can know of it."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Message:
        if isinstance(request, BrokerRegistrationRequest):
            return BrokerRegistrationResponse(broker_epoch=5)
        return BrokerHeartbeatResponse(is_fenced=False)


@on_a_loop
async def test_clients_wait_until_the_metadata_here_says_that_the_broker_was_let_in(
    settings: BrokerSettings,
) -> None:
    storage, metadata = NodeStorage(settings), ClusterMetadata()
    side = a_side(settings, storage, metadata, LetsIn())
    joining = asyncio.create_task(side.join(b"i" * 16))
    registered = RegisterBrokerRecord(broker_id=1, incarnation_id=b"i" * 16, broker_epoch=5)
    metadata.apply([committed(5, [registered])])
    for _ in range(10):
        await asyncio.sleep(0)
    assert not joining.done()
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1)
    metadata.apply([committed(6, [change])])
    await joining
    await side.shut_down()
    storage.abandon()


def a_side(
    settings: BrokerSettings,
    storage: NodeStorage,
    metadata: ClusterMetadata,
    controller: Any = None,
) -> BrokerRole:
    nobody: Any = None
    side = BrokerRole(
        settings,
        storage,
        metadata,
        Resolver(settings, metadata.image.configs),
        controller,
        nobody,
        nobody,
        MetricsRegistry(),
        Environment(),
    )
    metadata.subscribe(side.on_metadata_change)
    return side


def committed(last_offset: int, records: Iterable[Message]) -> CommittedBatch:
    frames = [encode_record(record, record.VERSIONS.max) for record in records]
    return CommittedBatch(last_offset, 1, 0, frames)


def append(log: Log, epoch: int) -> None:
    batch = bytearray(batch_of(b"a"))
    log.append_as_leader(ValidBatch(read_header(batch), batch, 0), epoch, 0)
