"""Brings classic groups back from their records."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def replay(groups: "GroupCoordinatorState", key: GroupMetadataKey, value: GroupMetadataValue | None) -> None:
    if value is not None:
        groups.by_id[key.group] = _group_of(key, value)
        return
    group = groups.by_id.get(key.group)
    if isinstance(group, ClassicGroup):
        # If anybody is in it, it is being converted: they join what it becomes.
        del groups.by_id[key.group]
        rebalance.dissolve(groups, group, ErrorCode.REBALANCE_IN_PROGRESS)


def loaded(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    """Give all members as long to be heard of as if they had been just now."""
    for member in group.members.values():
        rebalance.restart_session(groups, group, member)
    if group.is_to_rebalance:
        rebalance.prepare(groups, group, "it has not since it moved from the consumer protocol")
        return
    most = groups.settings.broker("group.max.size")
    if len(group.members) > most:
        rebalance.prepare(groups, group, f"{len(group.members)} members are over {most}")


def unloaded(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    """Another leads: whoever waits looks for it."""
    rebalance.dissolve(groups, group, ErrorCode.NOT_COORDINATOR)


def _group_of(key: GroupMetadataKey, value: GroupMetadataValue) -> ClassicGroup:
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
        group.add(_member_of(member, value.protocol or ""), value.protocol_type)
    # Only a group that has moved from the consumer protocol has members and nobody to lead them.
    group.is_to_rebalance = bool(value.members) and value.leader is None
    group.learn_subscriptions()
    return group


def _member_of(member: MemberMetadata, protocol: str) -> ClassicMember:
    """Of what it offered, only what the group chose is known."""
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
