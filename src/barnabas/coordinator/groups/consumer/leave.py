"""A member leaves: for good, or a static one for a while, so that its next start finds its place
kept."""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.membership import known_member
from barnabas.coordinator.groups.consumer.member import LEFT_FOR_A_WHILE, ConsumerMember
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

log = logging.getLogger(__name__)


def leave(
    groups: "GroupCoordinatorState", group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest
) -> Decision[ConsumerGroupHeartbeatResponse]:
    epoch = request.member_epoch
    member = known_member(group, request.member_id, request.instance_id)
    response = ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=epoch)
    log.info("group %s: member %s leaves (%d)", group.group_id, member.member_id, epoch)
    if epoch == LEFT_FOR_A_WHILE:
        left = _left_for_a_while(member)
        return Decision(response, [records.current_assignment(group.group_id, left)])
    return sessions.fence(groups, group, [member], response)


def _left_for_a_while(member: ConsumerMember) -> ConsumerMember:
    """It keeps what it has. Whoever takes its place may commit with any epoch from its own on."""
    return replace(
        member,
        member_epoch=LEFT_FOR_A_WHILE,
        assigned={
            topic_id: dict.fromkeys(partitions, 0)
            for topic_id, partitions in member.assigned.items()
        },
        pending_revocation={},
    )
