"""OffsetFetch (key 9): how far a group has read."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.coordinator.groups.offsets import _topic_offsets
from barnabas.coordinator.groups.offsets.record import NO_LEADER_EPOCH, CommittedOffset, OffsetKey
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.wire.uuid import ZERO

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

NO_OFFSET = -1

FIRST_VERSION_WITH_TOPIC_IDS = 10


def fetch(
    request: OffsetFetchRequestGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
    *,
    require_stable: bool,
) -> OffsetFetchResponseGroup:
    """Returns the offsets of one group; none if the group does not exist.

    With `require_stable`, an offset that an open transaction may change is an error (KIP-447).
    """
    group_id = request.group_id
    group = groups.by_id.get(group_id)
    if group is not None:
        group.check_fetch(request.member_id, request.member_epoch)
    by_id = context.client.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    image = context.image
    if request.topics is None:
        topics = _all_topics(group_id, require_stable, by_id, groups, image)
    else:
        topics = [
            _topic(topic, group_id, require_stable, by_id, groups, image)
            for topic in request.topics
        ]
    return OffsetFetchResponseGroup(group_id=group_id, topics=topics)


def _all_topics(
    group_id: str,
    require_stable: bool,
    by_id: bool,
    groups: "GroupCoordinatorState",
    image: MetadataImage,
) -> list[OffsetFetchResponseTopics]:
    """A version with topic ids leaves out deleted topics, which have none."""
    topics = []
    for name, offsets in groups.offsets.of(group_id).items():
        existing = image.topics.by_name(name)
        if existing is None and by_id:
            continue
        partitions = [
            _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if require_stable and _is_pending(group_id, name, index, groups)
            else _offset(index, committed)
            for index, committed in offsets
        ]
        topic_id = ZERO if existing is None else existing.topic_id
        topics.append(
            OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)
        )
    return topics


def _topic(
    request: OffsetFetchRequestTopics,
    group_id: str,
    require_stable: bool,
    by_id: bool,
    groups: "GroupCoordinatorState",
    image: MetadataImage,
) -> OffsetFetchResponseTopics:
    name = request.name
    if by_id:
        existing = image.topics.by_id(request.topic_id)
        if existing is None:
            return OffsetFetchResponseTopics(
                topic_id=request.topic_id,
                partitions=[
                    _no_offset(index, ErrorCode.UNKNOWN_TOPIC_ID)
                    for index in request.partition_indexes
                ],
            )
        name = existing.name
    offsets = groups.offsets.of(group_id).get(name)
    if not require_stable or not groups.offsets.pending.by_key:
        partitions = _topic_offsets.list_offsets(
            offsets,
            request.partition_indexes,
            request.topic_id if by_id else ZERO,
            OffsetFetchResponsePartitions,
        )
        return OffsetFetchResponseTopics(
            name=name, topic_id=request.topic_id, partitions=partitions
        )
    partitions = []
    for index in request.partition_indexes:
        committed = offsets.get(index) if offsets is not None else None
        if require_stable and _is_pending(group_id, name, index, groups):
            partitions.append(_no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif committed is None or (by_id and committed.topic_id not in (ZERO, request.topic_id)):
            partitions.append(_no_offset(index, ErrorCode.NONE))
        else:
            partitions.append(_offset(index, committed))
    return OffsetFetchResponseTopics(name=name, topic_id=request.topic_id, partitions=partitions)


def _is_pending(group_id: str, topic: str, partition: int, groups: "GroupCoordinatorState") -> bool:
    return OffsetKey(group_id, topic, partition) in groups.offsets.pending.by_key


def _offset(partition: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _no_offset(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=code,
    )
