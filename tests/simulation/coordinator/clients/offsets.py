"""Builds requests that commit and fetch offsets."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.coordinator.events import TopicPartition

from barnabas.wire.messages import group_offsets
from barnabas.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from tests.simulation.coordinator.clients.partition_work import Identity

COMMIT_VERSION = 9
FETCH_VERSION = 9


def commit_request(
    identity: "Identity", positions: dict[TopicPartition, int], *, tag: str
) -> group_offsets.OffsetCommitRequest:
    """`tag` identifies the commit when it is fetched: by its metadata, or by its leader epoch.

    The broker handles commits without metadata in another way.
    """
    epoch, metadata = -1, tag
    number = int(tag.rpartition("/")[2])
    if number % 2:
        epoch, metadata = number, ""
    return group_offsets.OffsetCommitRequest(
        group_id=identity.group_id,
        member_id=identity.member_id,
        generation_id_or_member_epoch=identity.generation,
        group_instance_id=identity.instance_id,
        topics=[
            group_offsets.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    group_offsets.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=positions[topic, index],
                        committed_leader_epoch=epoch,
                        committed_metadata=metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(positions).items()
        ],
    )


def tag_of(metadata: str | None, leader_epoch: int) -> str:
    """Returns the tag, or what stands for it, of a partition in a commit or a fetch."""
    return metadata or f"epoch {leader_epoch}"


def txn_commit_request(
    identity: "Identity",
    positions: dict[TopicPartition, int],
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
) -> group_offsets.TxnOffsetCommitRequest:
    return group_offsets.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        group_id=identity.group_id,
        member_id=identity.member_id,
        generation_id_or_member_epoch=identity.generation,
        group_instance_id=identity.instance_id,
        topics=[
            group_offsets.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    group_offsets.TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=positions[topic, index],
                        committed_metadata="",
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(positions).items()
        ],
    )


def fetch_request(
    identity: "Identity", partitions: Iterable[TopicPartition] | None
) -> OffsetFetchRequest:
    """`partitions` None requests all offsets of the group."""
    topics = None
    if partitions is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    group = OffsetFetchRequestGroup(group_id=identity.group_id, topics=topics)
    return OffsetFetchRequest(groups=[group], require_stable=True)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
