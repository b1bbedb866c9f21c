"""Topics: listing, describing, creating, altering and deleting them."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.cli.operations.connection import TIMEOUT_S
from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.setting_warnings import warn_of_settings
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.configs import ConfigEntry, ConfigResource
from barnabas.client.admin.log_dirs import ReplicaCompaction, TopicPartitionReplica
from barnabas.client.admin.model import ResourceType, TopicCollection, TopicPartitionInfo, Uuid
from barnabas.client.admin.partitions import PartitionReassignment
from barnabas.client.admin.topics import NewPartitions, NewTopic
from barnabas.client.values import TopicPartition
from barnabas.config.unknown_names import find_similar
from barnabas.wire.uuid import to_text

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
LARGEST_REPLICATION_FACTOR = 32_767
LOG_DIRS_TIMEOUT_S = 5.0
"""How long to wait for details from the leaders, which the rest of a description does not need."""

MIN_IN_SYNC_REPLICAS = "min.insync.replicas"

Compaction = Mapping[tuple[str, int], ReplicaCompaction]
"""By topic and partition."""


@dataclass(slots=True, frozen=True)
class PartitionDetails:
    """A partition, with min.insync.replicas of its topic and its reassignment."""

    topic: str
    state: TopicPartitionInfo
    min_in_sync_replicas: int
    """min.insync.replicas of the topic."""
    reassignment: PartitionReassignment | None = None

    @property
    def replication_factor(self) -> int:
        """The number of replicas, without those that a reassignment is adding."""
        moving = (
            {*self.reassignment.adding_replicas, *self.reassignment.removing_replicas}
            if self.reassignment
            else set()
        )
        if self.reassignment and any(replica.id in moving for replica in self.state.replicas):
            return len(self.reassignment.replicas) - len(self.reassignment.adding_replicas)
        return len(self.state.replicas)

    @property
    def is_under_replicated(self) -> bool:
        return len(self.state.isr) < self.replication_factor

    @property
    def is_offline(self) -> bool:
        return self.state.leader is None

    @property
    def is_under_min_isr(self) -> bool:
        return self.is_offline or len(self.state.isr) < self.min_in_sync_replicas

    @property
    def is_at_min_isr(self) -> bool:
        return len(self.state.isr) == self.min_in_sync_replicas


@dataclass(slots=True, frozen=True)
class TopicDetails:
    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionDetails, ...]
    configs: Mapping[str, ConfigEntry]

    @property
    def overrides(self) -> dict[str, str | None]:
        """The configs that are not defaults of the broker."""
        return {name: entry.value for name, entry in self.configs.items() if not entry.is_default}

    @property
    def is_compacted(self) -> bool:
        return "compact" in (self.configs["cleanup.policy"].value or "")


@dataclass(slots=True, frozen=True)
class TopicSpec:
    """A topic to create; the cluster has defaults for None."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    assignment: tuple[tuple[int, ...], ...] = ()
    configs: Mapping[str, str] | None = None


async def topic_names(
    admin: AioAdminClient, pattern: re.Pattern[str] | None = None, *, internal: bool = True
) -> list[str]:
    """Returns all topics, or those that fully match the pattern, sorted."""
    metadata = await admin.list_topics(timeout=TIMEOUT_S)
    matches = pattern.fullmatch if pattern is not None else str
    return sorted(
        name
        for name in metadata.topics
        if matches(name) and (internal or name not in INTERNAL_TOPICS)
    )


async def require_topics(admin: AioAdminClient, names: Collection[str]) -> None:
    """Raises CommandError if a topic does not exist, with the closest name."""
    there = await topic_names(admin)
    for name in names:
        if name not in there:
            similar = find_similar(name, there)
            hint = f"did you mean {similar}?" if similar else "see barnabas topics list"
            raise CommandError(f"Topic {name} does not exist: {hint}")


async def create_topic(admin: AioAdminClient, spec: TopicSpec, *, dry_run: bool = False) -> None:
    factor = spec.replication_factor
    if factor is not None and not 1 <= factor <= LARGEST_REPLICATION_FACTOR:
        raise CommandError(
            f"The replication factor must be between 1 and {LARGEST_REPLICATION_FACTOR} inclusive"
        )
    if spec.partitions is not None and spec.partitions < 1:
        raise CommandError("The partitions must be greater than 0")
    new = NewTopic(
        spec.name,
        num_partitions=-1 if spec.partitions is None or spec.assignment else spec.partitions,
        replication_factor=-1 if factor is None or spec.assignment else factor,
        replica_assignment=[list(replicas) for replicas in spec.assignment] or None,
        config=dict(spec.configs or {}),
    )
    (await admin.create_topics([new], validate_only=dry_run)).all()
    await warn_of_settings(admin, ConfigResource(ResourceType.TOPIC, spec.name), spec.configs or {})


async def add_partitions(
    admin: AioAdminClient,
    names: Collection[str],
    total: int,
    assignment: Sequence[Sequence[int]] = (),
) -> None:
    """Increases the partitions of topics to `total`; `assignment` includes existing partitions."""
    assigned: dict[str, list[list[int]] | None] = dict.fromkeys(names)
    if assignment:
        described = (await admin.describe_topics(TopicCollection(list(names)))).all()
        assigned = {
            name: [list(replicas) for replicas in assignment[len(topic.partitions) :]]
            for name, topic in described.items()
        }
    new = [NewPartitions(name, total, replica_assignment=assigned[name]) for name in names]
    (await admin.create_partitions(new)).all()


async def delete_topics(admin: AioAdminClient, names: Collection[str]) -> None:
    if names:
        (await admin.delete_topics(list(names))).all()


async def describe_topics(
    admin: AioAdminClient, names: Iterable[str], *, with_reassignments: bool = True
) -> list[TopicDetails]:
    """Returns topics by name. `with_reassignments` needs an active controller."""
    requested = sorted(names)
    if not requested:
        return []
    described = (await admin.describe_topics(TopicCollection(requested))).all()
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in described]
    configs = (await admin.describe_configs(resources)).all()
    moves = await admin.list_partition_reassignments() if with_reassignments else {}
    topics = []
    for resource in resources:
        name = resource.name
        topic, settings = described[name], configs[resource]
        min_in_sync_replicas = int(settings[MIN_IN_SYNC_REPLICAS].value or 1)
        partitions = [
            PartitionDetails(
                name, info, min_in_sync_replicas, moves.get(TopicPartition(name, info.id))
            )
            for info in sorted(topic.partitions, key=lambda partition: partition.id)
        ]
        topics.append(
            TopicDetails(
                name=name,
                topic_id=format_topic_id(topic.topic_id),
                is_internal=topic.is_internal,
                partitions=tuple(partitions),
                configs=settings,
            )
        )
    return topics


async def describe_compaction(admin: AioAdminClient, topics: Iterable[TopicDetails]) -> Compaction:
    """Returns how far the leaders of compacted topics are compacted.

    Partitions are left out if their leader does not report it, as Kafka's brokers do not.
    """
    replicas = [
        TopicPartitionReplica(topic.name, partition.state.id, partition.state.leader.id)
        for topic in topics
        if topic.is_compacted
        for partition in topic.partitions
        if partition.state.leader is not None
    ]
    if not replicas:
        return {}
    described = await admin.describe_replica_log_dirs(replicas, request_timeout=LOG_DIRS_TIMEOUT_S)
    return {
        (replica.topic, replica.partition): compaction
        for replica in described
        if replica not in described.errors
        and (compaction := described[replica].compaction) is not None
    }


async def find_topic_name(admin: AioAdminClient, topic_id: str) -> str | None:
    """Returns the topic with this id, or None."""
    topics = (await admin.list_topics(timeout=TIMEOUT_S)).topics
    matches = (
        name for name, topic in topics.items() if format_topic_id(topic.topic_id) == topic_id
    )
    return next(matches, None)


def format_topic_id(topic_id: Uuid) -> str:
    """Returns the id in Kafka's URL-safe base64."""
    return to_text(bytes(topic_id))


def parse_assignment(text: str) -> tuple[tuple[int, ...], ...]:
    """Parses `1:2,2:3`, the replicas of each partition."""
    try:
        assignment = tuple(tuple(map(int, replicas.split(":"))) for replicas in text.split(","))
    except ValueError:
        raise CommandError(
            f"{text!r} is not BROKER:BROKER,...: the replicas of each partition"
        ) from None
    for partition, replicas in enumerate(assignment):
        if len(set(replicas)) < len(replicas):
            twice = ",".join(
                str(replica) for replica in set(replicas) if replicas.count(replica) > 1
            )
            raise CommandError(
                f"Partition replica lists may not contain duplicate entries: {twice}"
            )
        if len(replicas) != len(assignment[0]):
            raise CommandError(
                f"Partition {partition} has different replication factor: {list(replicas)}"
            )
    return assignment
