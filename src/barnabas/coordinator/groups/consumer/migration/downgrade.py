"""From a consumer group to a classic group."""

import logging
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.coordinator.decision import CoordinatorDecision, Effect, log_line
from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import CONSUMER, ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.consumer import sessions
from barnabas.coordinator.groups.consumer.embedded_protocol import version_of, write_assignment
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.topics import metadata_hash
from barnabas.coordinator.groups.context import GroupContext
from barnabas.wire.errors import ProtocolViolation

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

R = TypeVar("R")

POLICIES: Final = frozenset({"downgrade", "bidirectional"})
"""The policies that allow it."""

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class StartClassicGroup(Effect):
    """Start the timers of a group that has become classic, and its rebalance if it needs one."""

    draft: ClassicGroup
    """The group with all protocols of its members. Its record has only one of each."""
    reason: str | None
    """Why it has to rebalance; None if it does not have to."""


def downgrade(
    leaving: Collection[str], group: ConsumerGroup, response: R, context: GroupContext
) -> CoordinatorDecision[R] | None:
    """Returns the decision if the last members of the consumer protocol leave and classic members
    stay; None if the group stays a consumer group."""
    left = [group.members[member_id] for member_id in leaving if member_id in group.members]
    consumers_left = sum(not member.uses_classic_protocol for member in left)
    if group.classic_member_count + consumers_left < len(group.members):
        return None
    staying = [member for member_id, member in group.members.items() if member_id not in leaving]
    reason = f"{', '.join(leaving)} left, the last members of the consumer protocol"
    return _to_classic(staying, group, response, reason, context)


def downgrade_by_replacement(
    former: ConsumerMember,
    joining: ConsumerMember,
    group: ConsumerGroup,
    response: R,
    context: GroupContext,
) -> CoordinatorDecision[R] | None:
    """The same for a static member that joins again by the classic protocol, if `former` was the
    last member of the consumer protocol. It has taken over what `former` had. If the group is
    stable, no member has to rebalance."""
    if former.uses_classic_protocol or group.classic_member_count + 1 < len(group.members):
        return None
    others = [member for member in group.members.values() if member is not former]
    is_stable = (
        joining.subscribed_topic_names == former.subscribed_topic_names
        and not former.subscribed_topic_regex
        and group.epoch == group.assignment_epoch
        and group.metadata_hash == metadata_hash(group.subscribed_topics, context.image)
        and _owned(joining) == group.target(former.member_id)
        and all(member.is_reconciled_to(group.epoch) for member in others)
    )
    reason = None if is_stable else f"{joining.member_id} joined again by the classic protocol"
    return _to_classic([*others, joining], group, response, reason, context)


def _to_classic(
    members: list[ConsumerMember],
    group: ConsumerGroup,
    response: R,
    reason: str | None,
    context: GroupContext,
) -> CoordinatorDecision[R] | None:
    if not members or not _may_downgrade(group, len(members), context):
        return None
    draft = ClassicGroup(
        group.group_id,
        context.now_ms,
        state=ClassicState.STABLE,
        generation=group.epoch,
        protocol_type=CONSUMER,
    )
    for member in members:
        draft.add(_to_classic_member(member), CONSUMER)
    draft.protocol = draft.elect_protocol()
    if reason is not None:
        draft.leader = None  # so that a coordinator that loads the record rebalances the group
    try:
        for member in members:
            drafted = draft.members[member.member_id]
            version = version_of(drafted.metadata(draft.protocol))
            drafted.assignment = write_assignment(_owned(member), version, context.image)
    except ProtocolViolation as violation:
        log.warning(
            "[GroupId %s] Cannot downgrade the group to the classic protocol: %s",
            group.group_id,
            violation,
        )
        return None
    effects: list[Effect] = [log_line(_log_converted, group.group_id, len(members))]
    for member_id in group.members:
        effects += sessions.cancel_timers(group.group_id, member_id)
    effects.append(StartClassicGroup(draft, reason))
    return CoordinatorDecision([*group.tombstones(), group_record(draft)], response, effects)


def _log_converted(group_id: str, member_count: int) -> None:
    log.info(
        "[GroupId %s] Converted the consumer group to a classic group with %d members.",
        group_id,
        member_count,
    )


def start_classic_group(
    effect: StartClassicGroup, groups: "GroupCoordinatorState", context: GroupContext
) -> None:
    """Performs the effect, after the records of the new group have been replayed."""
    group = groups.by_id.get(effect.draft.group_id)
    if not isinstance(group, ClassicGroup):
        return
    for member in group.members.values():
        group.change_options(member, effect.draft.members[member.member_id].join_options)
        groups.timers.start(rebalance.session_timer(group, member))
    if effect.reason is not None:
        # No member has joined yet, so there is no record to write.
        rebalance.prepare(group, effect.reason, groups, context)


def _may_downgrade(group: ConsumerGroup, size: int, context: GroupContext) -> bool:
    policy = context.settings.broker("group.consumer.migration.policy")
    if policy.lower() not in POLICIES:
        reason = "the online downgrade is disabled"
    elif size > context.settings.broker("group.max.size"):
        reason = "the group size exceeds the classic group maximum size"
    else:
        return True
    log.info(
        "[GroupId %s] Cannot downgrade the group to the classic protocol because %s.",
        group.group_id,
        reason,
    )
    return False


def _to_classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        {protocol.name: protocol.metadata for protocol in member.classic.supported_protocols},
    )


def _owned(member: ConsumerMember) -> Assignment:
    """Returns the partitions that a member may be consuming. Its target would be wrong: other
    members may own some of it, if the group moves back before it has rebalanced."""
    return {
        topic_id: frozenset(member.assigned.get(topic_id, ())).union(
            member.pending_revocation.get(topic_id, ())
        )
        for topic_id in member.assigned.keys() | member.pending_revocation.keys()
    }
