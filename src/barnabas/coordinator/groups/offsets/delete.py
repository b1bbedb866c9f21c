"""OffsetDelete (key 47): delete offsets of topics that the group is not subscribed to."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets.record import OffsetKey
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def delete(
    request: OffsetDeleteRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[OffsetDeleteResponse]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets are deleted from a named group.")
    group = groups.by_id.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
    group.check_delete_offsets()
    tombstones: list[CoordinatorRecord] = []
    topics = [
        OffsetDeleteResponseTopic(
            name=topic.name, partitions=_partitions(topic, group, tombstones, groups, context)
        )
        for topic in request.topics
    ]
    return CoordinatorDecision(tombstones, OffsetDeleteResponse(topics=topics))


def _partitions(
    topic: OffsetDeleteRequestTopic,
    group: Group,
    tombstones: list[CoordinatorRecord],
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> list[OffsetDeleteResponsePartition]:
    existing = context.image.topics.by_name(topic.name)
    is_subscribed = group.is_subscribed_to(topic.name)
    responses = []
    for partition in topic.partitions:
        index = partition.partition_index
        if existing is None or index not in existing.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_subscribed:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            code = ErrorCode.NONE
            key = OffsetKey(group.group_id, topic.name, index)
            if groups.offsets.has(key):
                tombstones.append(CoordinatorRecord(key, None))
        responses.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
    return responses
