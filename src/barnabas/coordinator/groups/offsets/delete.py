"""OffsetDelete: forget offsets that nobody in the group reads on from."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets.record import OffsetKey
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def delete(
    groups: "GroupCoordinatorState", request: OffsetDeleteRequest, client: GroupClient
) -> Decision[OffsetDeleteResponse]:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets are deleted from a named group.")
    group = groups.by_id.get(request.group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {request.group_id}.")
    group.check_delete_offsets()
    tombstones: list[CoordinatorRecord] = []
    topics = [
        OffsetDeleteResponseTopic(
            name=topic.name, partitions=_partitions(groups, group, topic, tombstones)
        )
        for topic in request.topics
    ]
    return Decision(OffsetDeleteResponse(topics=topics), tombstones)


def _partitions(
    groups: "GroupCoordinatorState",
    group: Group,
    topic: OffsetDeleteRequestTopic,
    tombstones: list[CoordinatorRecord],
) -> list[OffsetDeleteResponsePartition]:
    known = groups.image.topics.by_name(topic.name)
    is_subscribed = group.is_subscribed_to(topic.name)
    answers = []
    for partition in topic.partitions:
        index = partition.partition_index
        if known is None or index not in known.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif is_subscribed:
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            code = ErrorCode.NONE
            key = OffsetKey(group.group_id, topic.name, index)
            if groups.offsets.has(key):
                tombstones.append(CoordinatorRecord(key, None))
        answers.append(OffsetDeleteResponsePartition(partition_index=index, error_code=code))
    return answers
