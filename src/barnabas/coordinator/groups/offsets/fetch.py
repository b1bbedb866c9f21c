"""OffsetFetch: how far a group has read."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.offsets.record import NO_LEADER_EPOCH, CommittedOffset, OffsetKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_fetch import (
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
    groups: "GroupCoordinatorState", wanted: OffsetFetchRequestGroup, require_stable: bool, client: GroupClient
) -> OffsetFetchResponseGroup:
    """What one group has committed; a group that is not there has committed nothing.

    With `require_stable`, offsets that an open transaction may change are held back (KIP-447).
    """
    group = groups.by_id.get(wanted.group_id)
    if group is not None:
        group.check_fetch(wanted.member_id, wanted.member_epoch)
    by_id = client.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    return OffsetFetchResponseGroup(
        group_id=wanted.group_id,
        topics=_all_topics(groups, wanted.group_id, require_stable, by_id)
        if wanted.topics is None
        else [_topic(groups, wanted.group_id, t, require_stable, by_id) for t in wanted.topics],
    )


def _all_topics(
    groups: "GroupCoordinatorState", group_id: str, require_stable: bool, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    """Who wants ids is not told of topics that have none: those that are deleted."""
    topics = []
    for name, offsets in groups.offsets.of(group_id).items():
        known = groups.image.topics.by_name(name)
        if known is None and by_id:
            continue
        partitions = [
            _none(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
            if require_stable and _is_pending(groups, group_id, name, index)
            else _found(index, committed)
            for index, committed in offsets
        ]
        topic_id = ZERO if known is None else known.topic_id
        topics.append(
            OffsetFetchResponseTopics(name=name, topic_id=topic_id, partitions=partitions)
        )
    return topics


def _topic(
    groups: "GroupCoordinatorState",
    group_id: str,
    wanted: OffsetFetchRequestTopics,
    require_stable: bool,
    by_id: bool,
) -> OffsetFetchResponseTopics:
    name = wanted.name
    if by_id:
        known = groups.image.topics.by_id(wanted.topic_id)
        if known is None:
            return OffsetFetchResponseTopics(
                topic_id=wanted.topic_id,
                partitions=[
                    _none(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in wanted.partition_indexes
                ],
            )
        name = known.name
    offsets = groups.offsets.of(group_id).get(name)
    partitions = []
    for index in wanted.partition_indexes:
        committed = offsets.get(index) if offsets is not None else None
        if require_stable and _is_pending(groups, group_id, name, index):
            partitions.append(_none(index, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif committed is None or (by_id and committed.topic_id not in (ZERO, wanted.topic_id)):
            partitions.append(_none(index, ErrorCode.NONE))
        else:
            partitions.append(_found(index, committed))
    return OffsetFetchResponseTopics(name=name, topic_id=wanted.topic_id, partitions=partitions)


def _is_pending(groups: "GroupCoordinatorState", group_id: str, topic: str, partition: int) -> bool:
    return OffsetKey(group_id, topic, partition) in groups.offsets.pending.by_key


def _found(partition: int, committed: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def _none(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=NO_OFFSET,
        committed_leader_epoch=NO_LEADER_EPOCH,
        metadata="",
        error_code=code,
    )
