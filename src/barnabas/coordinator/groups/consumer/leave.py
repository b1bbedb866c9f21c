"""A member leaves: permanently, or a static member temporarily, which keeps its partitions."""

import logging
from dataclasses import replace

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import LEAVING_TEMPORARILY, ConsumerMember
from barnabas.coordinator.groups.consumer.membership import existing_member
from barnabas.coordinator.groups.context import GroupContext
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

log = logging.getLogger(__name__)


def leave(
    request: ConsumerGroupHeartbeatRequest, group: ConsumerGroup, context: GroupContext
) -> CoordinatorDecision[ConsumerGroupHeartbeatResponse]:
    epoch = request.member_epoch
    member = existing_member(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    if epoch == LEAVING_TEMPORARILY:
        log.info(
            "[GroupId %s] Static member %s with instance id %s temporarily left the group.",
            group.group_id,
            member.member_id,
            member.instance_id,
        )
        record = records.current_assignment(group.group_id, _left_temporarily(member))
        return CoordinatorDecision([record], response)
    log.info("[GroupId %s] Member %s left the group.", group.group_id, member.member_id)
    return sessions.fence([member], group, response, context)


def _left_temporarily(member: ConsumerMember) -> ConsumerMember:
    """It keeps its partitions. The member that replaces it may commit with any epoch."""
    return replace(
        member,
        member_epoch=LEAVING_TEMPORARILY,
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned.items()
        },
        pending_revocation={},
    )
