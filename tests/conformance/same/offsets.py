"""Requests about committed offsets, in few words.

Topics go by name up to a version and by id from the next one on, so every request is made for a
side and a version.
"""

from collections.abc import Sequence
from typing import Any

from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.sides import Side

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
BY_ID = 10
BATCHED = 8
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
            partition_index=each,
            committed_offset=offset,
            committed_leader_epoch=leader_epoch,
            committed_metadata=metadata,
        )
        for each in partitions
    ]
    named = topic_id(side, topic) if version >= BY_ID else bytes(16)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance,
        topics=[OffsetCommitRequestTopic(name=topic, topic_id=named, partitions=committed)],
    )


def fetched(
    side: Side,
    version: int,
    *groups: str,
    topics: Sequence[str] | None = (PLAIN,),
    partitions: Sequence[int] = (0, 1),
    require_stable: bool = False,
    member_id: str | None = None,
    member_epoch: int = -1,
) -> OffsetFetchRequest:
    """What groups have committed; for all topics if `topics` is None."""
    indexes = list(partitions)
    if version < BATCHED:
        return OffsetFetchRequest(
            group_id=groups[0],
            topics=None
            if topics is None
            else [OffsetFetchRequestTopic(name=each, partition_indexes=indexes) for each in topics],
            require_stable=require_stable,
        )
    asked = (
        None
        if topics is None
        else [
            OffsetFetchRequestTopics(
                name=each,
                topic_id=topic_id(side, each) if version >= BY_ID else bytes(16),
                partition_indexes=indexes,
            )
            for each in topics
        ]
    )
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=each, member_id=member_id, member_epoch=member_epoch, topics=asked
            )
            for each in groups
        ],
        require_stable=require_stable,
    )


def delete_offsets(group: str, *topics: str, partitions: Sequence[int] = (0,)) -> Any:
    deleted = [OffsetDeleteRequestPartition(partition_index=each) for each in partitions]
    return OffsetDeleteRequest(
        group_id=group,
        topics=[OffsetDeleteRequestTopic(name=each, partitions=deleted) for each in topics],
    )
