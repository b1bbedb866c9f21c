"""Rebuilds classic groups from their records."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.context import GroupContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def replay(
    key: GroupMetadataKey, value: GroupMetadataValue | None, groups: "GroupCoordinatorState"
) -> None:
    if value is not None:
        groups.by_id[key.group] = _to_group(key, value)
        return
    group = groups.by_id.get(key.group)
    if isinstance(group, ClassicGroup):
        # A group with members is being converted: they join the consumer group it becomes.
        del groups.by_id[key.group]
        rebalance.dissolve(group, ErrorCode.REBALANCE_IN_PROGRESS, groups)


def on_loaded(group: ClassicGroup, groups: "GroupCoordinatorState", context: GroupContext) -> None:
    """Gives all members a full session timeout."""
    for member in group.members.values():
        groups.timers.start(rebalance.session_timer(group, member))
    max_size = context.settings.broker("group.max.size")
    if group.needs_rebalance:
        reason = "the group has not rebalanced since it left the consumer protocol"
    elif len(group.members) > max_size:
        reason = f"freshly-loaded group is over capacity ({len(group.members)} > {max_size})"
    else:
        return
    rebalance.prepare(group, reason, groups, context)


def on_unloaded(group: ClassicGroup, groups: "GroupCoordinatorState") -> None:
    """Another broker leads: members that wait look for it."""
    rebalance.dissolve(group, ErrorCode.NOT_COORDINATOR, groups)


def _to_group(key: GroupMetadataKey, value: GroupMetadataValue) -> ClassicGroup:
    since_ms = value.current_state_timestamp
    group = ClassicGroup(
        key.group,
        None if since_ms == -1 else since_ms,
        state=ClassicState.STABLE if value.members else ClassicState.EMPTY,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol=value.protocol,
        leader=value.leader,
    )
    for member in value.members:
        group.add(_to_member(member, value.protocol or ""), value.protocol_type)
    # Only a group that was converted from a consumer group has members and no leader.
    group.needs_rebalance = bool(value.members) and value.leader is None
    group.update_subscriptions()
    return group


def _to_member(member: MemberMetadata, protocol: str) -> ClassicMember:
    """Of the member's protocols, the record has only the one that the group selected."""
    has_timeout = member.rebalance_timeout != -1  # v0 had none of its own
    return ClassicMember(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout,
        member.rebalance_timeout if has_timeout else member.session_timeout,
        {protocol: member.subscription},
        member.assignment,
    )
