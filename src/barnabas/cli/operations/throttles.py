"""Replication throttles of a reassignment: the rate on brokers, the replicas on topics."""

from collections.abc import Iterable, Mapping

from barnabas.cli.operations.reassignments import Assignment
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.model import AlterConfigOpType, ResourceType
from barnabas.client.admin.partitions import PartitionReassignment
from barnabas.client.values import PartitionKey

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIRECTORY_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADERS = "leader.replication.throttled.replicas"
FOLLOWERS = "follower.replication.throttled.replicas"


async def throttle_replication(
    admin: AioAdminClient,
    current: Assignment,
    target: Assignment,
    moves: Mapping[PartitionKey, PartitionReassignment],
    bytes_per_second: int,
) -> None:
    """Throttles a reassignment before it starts, and those in progress."""
    sources: dict[PartitionKey, set[int]] = {}
    destinations: dict[PartitionKey, set[int]] = {}
    for partition, reassignment in moves.items():
        sources[partition] = set(reassignment.replicas) - set(reassignment.adding_replicas)
        destinations[partition] = set(reassignment.adding_replicas)
    for partition, ids in target.items():
        sources.setdefault(partition, set(current[partition]))
        destinations[partition] = set(ids) - sources[partition]
    topics = {topic for topic, _ in sources}
    of_topics = [
        _alteration(
            ResourceType.TOPIC,
            topic,
            {LEADERS: _replicas(topic, sources), FOLLOWERS: _replicas(topic, destinations)},
        )
        for topic in sorted(topics)
    ]
    (await admin.incremental_alter_configs(of_topics)).all()
    brokers = set().union(*sources.values(), *destinations.values())
    rate = str(bytes_per_second)
    await _change_brokers(admin, brokers, {LEADER_RATE: rate, FOLLOWER_RATE: rate})


async def throttle_log_dir_moves(
    admin: AioAdminClient, brokers: Iterable[int], bytes_per_second: int
) -> None:
    await _change_brokers(admin, brokers, {DIRECTORY_RATE: str(bytes_per_second)})


async def clear_broker_throttles(admin: AioAdminClient, brokers: Iterable[int]) -> None:
    rates = dict.fromkeys((LEADER_RATE, FOLLOWER_RATE, DIRECTORY_RATE))
    await _change_brokers(admin, brokers, rates)


async def clear_topic_throttles(admin: AioAdminClient, topics: Iterable[str]) -> None:
    replicas = dict.fromkeys((LEADERS, FOLLOWERS))
    changed = [_alteration(ResourceType.TOPIC, topic, replicas) for topic in topics]
    if changed:
        (await admin.incremental_alter_configs(changed)).all()


async def _change_brokers(
    admin: AioAdminClient, brokers: Iterable[int], settings: Mapping[str, str | None]
) -> None:
    changed = [
        _alteration(ResourceType.BROKER, str(broker), settings) for broker in sorted(brokers)
    ]
    if changed:
        (await admin.incremental_alter_configs(changed)).all()


def _alteration(
    kind: ResourceType, name: str, settings: Mapping[str, str | None]
) -> ConfigResource:
    """Returns a resource with these settings set, or deleted where they are None."""
    changes = [
        ConfigEntry(
            key,
            value,
            incremental_operation=AlterConfigOpType.DELETE
            if value is None
            else AlterConfigOpType.SET,
        )
        for key, value in settings.items()
    ]
    return ConfigResource(kind, name, incremental_configs=changes)


def _replicas(topic: str, brokers: Mapping[PartitionKey, set[int]]) -> str:
    return ",".join(
        sorted(
            f"{index}:{broker_id}"
            for (name, index), ids in brokers.items()
            if name == topic
            for broker_id in ids
        )
    )
