"""A restarted broker does not act on metadata that is older than its registration."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from tests.replication.world import batch_of, id_of, topic_records
from tests.server.harness import on_a_loop

from barnabas.config import BrokerSettings, ConfigResolver
from barnabas.log import Log
from barnabas.metadata.frames import encode_record
from barnabas.node.broker_role import BrokerRole
from barnabas.node.cluster_metadata import ClusterMetadata
from barnabas.node.environment import Environment
from barnabas.node.format import format_new_directories, single_node_properties
from barnabas.node.security import NodeSecurity
from barnabas.node.storage import NodeStorage
from barnabas.raft import CommittedBatch
from barnabas.server.metrics.registry import MetricsRegistry
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from barnabas.wire.messages.registrations import (
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
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
async def test_a_restarted_broker_does_not_become_leader_of_an_old_epoch(
    settings: BrokerSettings, topic: str, changes: int
) -> None:
    """It led once, and has been a follower since. If it became leader again until it has read more
    of the metadata, it would lose the start offsets of later epochs."""
    storage = NodeStorage(settings)
    topic_id = id_of(topic)
    log = storage.directories[0].create_log(topic, 0, topic_id)
    for epoch in (0, 3, 7):
        append(log, epoch)
    epochs = log.leader_epochs.entries
    log.close()
    storage.directories[0].on_log_closed(log)
    metadata = ClusterMetadata()
    role = a_broker_role(settings, storage, metadata)

    led_here = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=1)
    led_there = PartitionChangeRecord(topic_id=topic_id, partition_id=0, leader=2)
    made = topic_records(topic, replicas=(1, 2))
    metadata.apply([committed(2, [*made, *[led_here] * changes])])
    for _ in range(5):
        await asyncio.sleep(0)  # a coordinator would load the partitions that it leads
    metadata.apply([committed(10, [led_there] * 7)])

    assert role.partitions.get(topic_id, 0).log.leader_epochs.entries == epochs
    storage.abandon()


class FakeController:
    """Registers and unfences a broker before the broker has read that in the metadata."""

    async def handle(self, request: Message, *, timeout_ms: int = 0) -> Message:
        if isinstance(request, BrokerRegistrationRequest):
            return BrokerRegistrationResponse(broker_epoch=5)
        return BrokerHeartbeatResponse(is_fenced=False)


@on_a_loop
async def test_a_broker_starts_to_serve_once_its_own_metadata_shows_that_it_is_unfenced(
    settings: BrokerSettings,
) -> None:
    storage, metadata = NodeStorage(settings), ClusterMetadata()
    role = a_broker_role(settings, storage, metadata, FakeController())
    joining = asyncio.create_task(role.join(b"i" * 16))
    registered = RegisterBrokerRecord(broker_id=1, incarnation_id=b"i" * 16, broker_epoch=5)
    metadata.apply([committed(5, [registered])])
    for _ in range(10):
        await asyncio.sleep(0)
    assert not joining.done()
    change = BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=5, fenced=-1)
    metadata.apply([committed(6, [change])])
    await joining
    await role.shut_down()
    storage.abandon()


def a_broker_role(
    settings: BrokerSettings,
    storage: NodeStorage,
    metadata: ClusterMetadata,
    controller: Any = None,
) -> BrokerRole:
    nothing: Any = None
    role = BrokerRole(
        settings,
        storage,
        metadata,
        ConfigResolver(settings, metadata.image.configs),
        NodeSecurity(settings, nothing, lambda: metadata.image, nothing, {}),
        controller,
        nothing,
        nothing,
        nothing,
        MetricsRegistry(),
        Environment(),
        authorizer=None,
    )
    metadata.subscribe(role.on_metadata_change)
    return role


def committed(last_offset: int, records: Iterable[Message]) -> CommittedBatch:
    frames = [encode_record(record, record.VERSIONS.max) for record in records]
    return CommittedBatch(last_offset, 1, 0, frames)


def append(log: Log, epoch: int) -> None:
    batch = bytearray(batch_of(b"a"))
    log.append_as_leader(ValidBatch(read_header(batch), batch, 0), epoch, 0)
