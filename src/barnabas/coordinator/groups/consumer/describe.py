"""ConsumerGroupDescribe (key 69): a group with its members, their assignments and targets.

v1 has whether a member uses the classic protocol.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.membership import consumer_group
from barnabas.coordinator.groups.consumer.target_assignment import default_assignor
from barnabas.coordinator.groups.context import GroupContext
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages.consumer_groups import (
    DescribedAssignment,
    DescribedGroup,
    DescribedTopicPartitions,
    Member,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

_CLASSIC, _CONSUMER = 0, 1


def describe(
    group_id: str, groups: "GroupCoordinatorState", context: GroupContext
) -> DescribedGroup:
    """Raises KafkaError (GROUP_ID_NOT_FOUND) if there is no such consumer group."""
    group = consumer_group(group_id, groups)
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.preferred_assignor() or default_assignor(context),
        members=[_member(group, member, context.image) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember, image: MetadataImage) -> Member:
    owned_partitions: dict[bytes, set[int]] = {}
    for owned in (member.assigned, member.pending_revocation):
        for topic_id, partitions in owned.items():
            owned_partitions.setdefault(topic_id, set()).update(partitions)
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        assignment=_assignment(owned_partitions, image),
        target_assignment=_assignment(group.target(member.member_id), image),
        member_type=_CLASSIC if member.uses_classic_protocol else _CONSUMER,
    )


def _assignment(
    partitions_by_topic: Mapping[bytes, Iterable[int]], image: MetadataImage
) -> DescribedAssignment:
    """Leaves out topics that were deleted."""
    return DescribedAssignment(
        topic_partitions=[
            DescribedTopicPartitions(
                topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions)
            )
            for topic_id, partitions in partitions_by_topic.items()
            if (topic := image.topics.by_id(topic_id)) is not None
        ]
    )
