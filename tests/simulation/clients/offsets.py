"""Requests about committed offsets, in short."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.simulation.events import TopicPartition

from barnabas.wire.messages import offset_commit, txn_offset_commit
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

if TYPE_CHECKING:
    from tests.simulation.clients.work import Identity

COMMIT_VERSION = 9
FETCH_VERSION = 9


def commit_request(
    identity: "Identity", positions: dict[TopicPartition, int], *, tag: str
) -> offset_commit.OffsetCommitRequest:
    """`tag` goes into the metadata, by which the commit is known when it is fetched."""
    return offset_commit.OffsetCommitRequest(
        group_id=identity.group_id,
        member_id=identity.member_id,
        generation_id_or_member_epoch=identity.generation,
        group_instance_id=identity.instance_id,
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    offset_commit.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=positions[topic, index],
                        committed_metadata=tag,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(positions).items()
        ],
    )


def txn_commit_request(
    identity: "Identity",
    positions: dict[TopicPartition, int],
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
) -> txn_offset_commit.TxnOffsetCommitRequest:
    return txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        group_id=identity.group_id,
        member_id=identity.member_id,
        generation_id_or_member_epoch=identity.generation,
        group_instance_id=identity.instance_id,
        topics=[
            txn_offset_commit.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    txn_offset_commit.TxnOffsetCommitRequestPartition(
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
    """None asks for all that the group has."""
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
