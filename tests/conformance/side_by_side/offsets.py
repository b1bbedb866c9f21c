"""Requests for committed offsets.

Topics have names up to a version and ids from the next one on, so every request is built for a
side and a version.
"""

from collections.abc import Sequence
from typing import Any

from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.sides import Side

from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

COMMIT_VERSIONS = range(2, 11)
FETCH_VERSIONS = range(1, 11)
FIRST_BY_ID = 10
FIRST_BATCHED = 8
UNKNOWN_ID = b"\x01" * 16


def topic_id(side: Side, topic: str) -> bytes:
    return side.topic_id(topic) if topic == PLAIN else UNKNOWN_ID


def commit(
    side: Side,
    version: int,
    group: str,
    offset: int = 5,
    *,
    topic: str = PLAIN,
    partitions: Sequence[int] = (0,),
    member_id: str = "",
    generation: int = -1,
    instance: str | None = None,
    leader_epoch: int = -1,
    metadata: str | None = "",
) -> OffsetCommitRequest:
    committed = [
        OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for partition in partitions
    ]
    id_of_topic = topic_id(side, topic) if version >= FIRST_BY_ID else bytes(16)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=id_of_topic, partitions=committed)],
    )


def fetch_offsets(
    side: Side,
    version: int,
    *groups: str,
    topics: Sequence[str] | None = (PLAIN,),
    partitions: Sequence[int] = (0, 1),
    require_stable: bool = False,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> OffsetFetchRequest:
    """Returns an OffsetFetch of groups; for all topics if `topics` is None."""
    indexes = list(partitions)
    if version < FIRST_BATCHED:
        return OffsetFetchRequest(
            group_id=groups[0],
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopic(name=topic, partition_indexes=indexes) for topic in topics
            ],
            require_stable=require_stable,
        )
    requested = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(
                name=topic,
                topic_id=topic_id(side, topic) if version >= FIRST_BY_ID else bytes(16),
                partition_indexes=indexes,
            )
            for topic in topics
        ]
    )
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group, member_id=member_id, member_epoch=member_epoch, topics=requested
            )
            for group in groups
        ],
        require_stable=require_stable,
    )


def delete_offsets(group: str, *topics: str, partitions: Sequence[int] = (0,)) -> Any:
    deleted = [OffsetDeleteRequestPartition(partition_index=partition) for partition in partitions]
    return OffsetDeleteRequest(
        group_id=group,
        topics=[OffsetDeleteRequestTopic(name=topic, partitions=deleted) for topic in topics],
    )
