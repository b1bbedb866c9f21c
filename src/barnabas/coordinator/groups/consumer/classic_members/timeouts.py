"""Whether a classic member is who it says, and is heard of in time.

Besides its session it has limits of its own: once told to join again it has its rebalance timeout
to do so, and once it has joined as long again to sync. An alarm that comes too late does nothing.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.consumer import sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.membership import known_member
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

log = logging.getLogger(__name__)


def speaker(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember:
    """The member; KafkaError unless it is one of this protocol, at the generation it names."""
    member = known_member(group, request.member_id, request.group_instance_id)
    if not member.uses_classic_protocol:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Member {member.member_id} of group {group.group_id} speaks the consumer protocol.",
        )
    if request.generation_id != member.member_epoch:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"Member {member.member_id} of group {group.group_id} is in generation "
            f"{member.member_epoch}, not {request.generation_id}.",
        )
    return member


def keep(groups: "GroupCoordinatorState", group: ConsumerGroup, member: ConsumerMember) -> None:
    """It was heard of just now."""
    assert member.classic is not None
    sessions.start_session(
        groups, group.group_id, member.member_id, member.classic.session_timeout_ms
    )


def await_join(groups: "GroupCoordinatorState", group: ConsumerGroup, member: ConsumerMember) -> None:
    """It is told to join again; what counts is when it was told so first."""
    if ("join", group.group_id, member.member_id) not in groups.timers:
        _set_limit(groups, group, member, "join")


def await_sync(groups: "GroupCoordinatorState", group: ConsumerGroup, member: ConsumerMember) -> None:
    """It has joined."""
    groups.timers.cancel(("join", group.group_id, member.member_id))
    keep(groups, group, member)
    _set_limit(groups, group, member, "sync")


def has_synced(groups: "GroupCoordinatorState", group: ConsumerGroup, member: ConsumerMember) -> None:
    groups.timers.cancel(("sync", group.group_id, member.member_id))
    keep(groups, group, member)


def _set_limit(groups: "GroupCoordinatorState", group: ConsumerGroup, member: ConsumerMember, to: str) -> None:
    groups.timers.set(
        (to, group.group_id, member.member_id),
        member.rebalance_timeout_ms,
        partial(_give_up, groups, group.group_id, member.member_id, to),
    )


def _give_up(groups: "GroupCoordinatorState", group_id: str, member_id: str, to: str) -> Decision[None]:
    group = groups.by_id.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or not member.uses_classic_protocol:
        return sessions.nothing_more()
    log.info("group %s: member %s is fenced: it did not %s in time", group_id, member_id, to)
    return sessions.fence(groups, group, [member], None)
