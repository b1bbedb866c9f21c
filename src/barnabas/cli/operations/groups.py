"""Consumer groups: listing, describing and deleting them and their offsets."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.partitions import list_partitions, try_list_offsets
from barnabas.client.admin import AioAdminClient
from barnabas.client.admin.group_descriptions import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    MemberDescription,
)
from barnabas.client.admin.model import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
)
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.values import PartitionKey, TopicPartition

STATE_NAMES = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.ASSIGNING: "Assigning",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.RECONCILING: "Reconciling",
}
TYPE_NAMES = {ConsumerGroupType.CONSUMER: "Consumer", ConsumerGroupType.CLASSIC: "Classic"}
REBALANCING = frozenset(
    {
        ConsumerGroupState.PREPARING_REBALANCING,
        ConsumerGroupState.COMPLETING_REBALANCING,
        ConsumerGroupState.ASSIGNING,
        ConsumerGroupState.RECONCILING,
    }
)


@dataclass(slots=True, frozen=True)
class GroupOffset:
    """The committed offset of a group in one partition; None where it is unknown."""

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    leader_epoch: int | None
    log_end_offset: int | None
    member: MemberDescription | None = None

    @property
    def lag(self) -> int | None:
        if self.committed_offset is None or self.log_end_offset is None:
            return None
        return self.log_end_offset - self.committed_offset


async def list_groups(
    admin: AioAdminClient,
    states: Collection[ConsumerGroupState] = (),
    types: Collection[ConsumerGroupType] = (),
) -> list[ConsumerGroupListing]:
    """Returns groups in the order of their ids. Raises KafkaException on an error of a broker."""
    listed = await admin.list_consumer_groups(states=set(states) or None, types=set(types) or None)
    if listed.errors:
        raise listed.errors[0]
    return sorted(listed.valid, key=lambda group: group.group_id)


async def list_group_ids(admin: AioAdminClient) -> list[str]:
    return [group.group_id for group in await list_groups(admin)]


async def describe_groups(
    admin: AioAdminClient, ids: Iterable[str]
) -> dict[str, ConsumerGroupDescription]:
    """Returns groups in the order of their ids; a group that does not exist is DEAD."""
    group_ids = sorted(set(ids))
    if not group_ids:
        return {}
    return (await admin.describe_consumer_groups(group_ids)).all()


async def committed_offsets(
    admin: AioAdminClient, group_id: str
) -> dict[PartitionKey, TopicPartition]:
    response = await admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group_id)])
    return {
        (topic_partition.topic, topic_partition.partition): topic_partition
        for topic_partition in response[group_id].topic_partitions or ()
        if topic_partition.offset >= 0
    }


async def group_offsets(
    admin: AioAdminClient, group: ConsumerGroupDescription
) -> list[GroupOffset]:
    """Returns offsets by member, most partitions first, then of unassigned partitions."""
    committed = await committed_offsets(admin, group.group_id)
    owned: dict[PartitionKey, MemberDescription | None] = {}
    for member in sorted(group.members, key=lambda member: -len(_partitions(member))):
        owned |= dict.fromkeys(_partitions(member), member)
    owned |= dict.fromkeys(sorted(set(committed) - set(owned)))
    ends, _ = await try_list_offsets(admin, owned, OffsetSpec.latest())
    return [
        GroupOffset(
            group=group.group_id,
            topic=partition[0],
            partition=partition[1],
            committed_offset=committed[partition].offset if partition in committed else None,
            leader_epoch=committed[partition].leader_epoch if partition in committed else None,
            log_end_offset=ends.get(partition),
            member=member,
        )
        for partition, member in owned.items()
    ]


async def delete_groups(admin: AioAdminClient, ids: Sequence[str]) -> dict[str, KafkaError | None]:
    """Deletes groups; returns the error of each, or None."""
    if not ids:
        return {}
    results = await admin.delete_consumer_groups(list(ids))
    return {group: results.errors.get(group) for group in results}


@dataclass(slots=True, frozen=True)
class OffsetDeletion:
    """The errors of a deletion; the partition of a topic that does not exist is None."""

    error: KafkaError | None
    partitions: dict[tuple[str, int | None], KafkaError | None]


async def delete_offsets(
    admin: AioAdminClient, group_id: str, topics: Sequence[str]
) -> OffsetDeletion:
    """Deletes committed offsets in topics, or in partitions given as `topic:0,1`."""
    partitions: list[PartitionKey] = []
    missing: dict[tuple[str, int | None], KafkaError | None] = {}
    for topic in topics:
        try:
            partitions += await parse_partitions(admin, [topic])
        except KafkaException as failure:
            missing[topic, None] = failure.args[0]
    if not partitions:
        return OffsetDeletion(None, missing)
    topic_partitions = [TopicPartition(*partition) for partition in dict.fromkeys(partitions)]
    request = ConsumerGroupTopicPartitions(group_id, topic_partitions)
    try:
        response = (await admin.delete_consumer_group_offsets([request]))[group_id]
    except KafkaException as failure:
        error: KafkaError = failure.args[0]
        return OffsetDeletion(error, missing | dict.fromkeys(partitions, error))
    outcomes = {
        (topic_partition.topic, topic_partition.partition): topic_partition.error
        for topic_partition in response.topic_partitions or ()
    }
    first_error = next((error for error in outcomes.values() if error is not None), None)
    return OffsetDeletion(first_error, missing | outcomes)


async def parse_partitions(admin: AioAdminClient, topics: Sequence[str]) -> list[PartitionKey]:
    """Returns the partitions of topics, each given as its name or as `name:0,1,2`."""
    named: list[PartitionKey] = []
    whole = []
    for text in topics:
        topic, colon, indexes = text.partition(":")
        if not colon:
            whole.append(topic)
            continue
        for index in indexes.split(","):
            if not index.isdecimal():
                raise CommandError(f"Invalid partition '{index}' specified in topic arg '{text}''")
            named.append((topic, int(index)))
    return named + await list_partitions(admin, whole)


def _partitions(member: MemberDescription) -> list[PartitionKey]:
    return sorted(
        (topic_partition.topic, topic_partition.partition)
        for topic_partition in member.assignment.topic_partitions
    )
