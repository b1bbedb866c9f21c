"""The checks and timers of classic members in a consumer group.

Besides its session a member has two timers: once it gets REBALANCE_IN_PROGRESS it has its
rebalance timeout to join again, and once it has joined it has as long to sync. A timer that
expires too late does nothing.
"""

from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import (
    CancelTimer,
    CoordinatorDecision,
    Effect,
    StartTimer,
    log_line,
    no_change,
)
from barnabas.coordinator.groups.consumer import events, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.membership import existing_member
from barnabas.coordinator.groups.context import GroupContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import HeartbeatRequest, SyncGroupRequest

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def classic_member(
    group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest
) -> ConsumerMember:
    """Returns the sender. Raises KafkaError if it is not a classic member, or at another
    generation."""
    member = existing_member(group, request.member_id, request.group_instance_id)
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


def join_timer(group: ConsumerGroup, member: ConsumerMember) -> StartTimer:
    """Returns the timer of a member that has to join again. It runs from the first response that
    says so."""
    return _timer("join", group, member, only_if_absent=True)


def on_joined(group: ConsumerGroup, member: ConsumerMember, context: GroupContext) -> list[Effect]:
    return [
        CancelTimer(("join", group.group_id, member.member_id)),
        sessions.session_timer(group.group_id, member, context),
        _timer("sync", group, member),
    ]


def on_synced(group: ConsumerGroup, member: ConsumerMember, context: GroupContext) -> list[Effect]:
    return [
        CancelTimer(("sync", group.group_id, member.member_id)),
        sessions.session_timer(group.group_id, member, context),
    ]


def _timer(
    step: str, group: ConsumerGroup, member: ConsumerMember, *, only_if_absent: bool = False
) -> StartTimer:
    return StartTimer(
        (step, group.group_id, member.member_id),
        member.rebalance_timeout_ms,
        partial(_on_timeout, group.group_id, member.member_id, step),
        only_if_absent=only_if_absent,
    )


def _on_timeout(
    group_id: str, member_id: str, step: str, groups: "GroupCoordinatorState", context: GroupContext
) -> CoordinatorDecision[None]:
    group = groups.by_id.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or not member.uses_classic_protocol:
        return no_change()
    reason = f"did not {step} within {member.rebalance_timeout_ms}ms"
    fenced = log_line(events.member_fenced, group_id, member_id, f"it {reason}")
    return sessions.fence([member], group, f"member {member_id} {reason}", None, context, fenced)
