"""The timers of members: to heartbeat, and to revoke partitions.

A timer that expires checks the member as it is then, so one that expires too late does nothing.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.decision import (
    CancelTimer,
    CoordinatorDecision,
    DecisionBuilder,
    Effect,
    LogLine,
    StartTimer,
    log_line,
    no_change,
)
from barnabas.coordinator.groups.consumer import events, migration, records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.groups.consumer.topics import metadata_hash, topics_after, unused_regexes
from barnabas.coordinator.groups.context import GroupContext

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

R = TypeVar("R")


def session_timer(group_id: str, member: ConsumerMember, context: GroupContext) -> StartTimer:
    """Returns the timer that fences a member which sends no heartbeat for its session timeout:
    its own if it uses the classic protocol, else the group's."""
    timeout_ms = (
        context.settings.group(group_id)["consumer.session.timeout.ms"]
        if member.classic is None
        else member.classic.session_timeout_ms
    )
    return StartTimer(
        session_key(group_id, member),
        timeout_ms,
        partial(_on_session_timeout, group_id, member.member_id),
    )


def session_key(group_id: str, member: ConsumerMember) -> tuple[str, str, str]:
    return ("session", group_id, member.member_id)


def revocation_timer(group_id: str, member: ConsumerMember) -> Sequence[Effect]:
    """Starts the timer of a member that has to revoke partitions, which has its rebalance timeout
    to do so, and cancels that of any other. Classic members have other timers."""
    if member.uses_classic_protocol:
        return ()
    key = ("rebalance", group_id, member.member_id)
    if member.state is not MemberState.UNREVOKED_PARTITIONS:
        return (CancelTimer(key),)
    on_timeout = partial(_on_revocation_timeout, group_id, member.member_id, member.member_epoch)
    return (StartTimer(key, member.rebalance_timeout_ms, on_timeout),)


def cancel_timers(group_id: str, member_id: str) -> list[Effect]:
    return [
        CancelTimer((timer, group_id, member_id))
        for timer in ("session", "rebalance", "join", "sync")
    ]


def on_loaded(group: ConsumerGroup, context: GroupContext) -> list[Effect]:
    """The last heartbeats of members are not in the log: all get their full timeouts. Topics may
    have changed meanwhile."""
    group.has_new_topics = True
    effects: list[Effect] = []
    for member in group.members.values():
        effects.append(session_timer(group.group_id, member, context))
        effects += revocation_timer(group.group_id, member)
    return effects


def fence(
    members: Sequence[ConsumerMember],
    group: ConsumerGroup,
    reason: str,
    response: R,
    context: GroupContext,
    *lines: LogLine,
) -> CoordinatorDecision[R]:
    """Removes members from the group, whether they leave or have timed out. The log lines say
    which."""
    group_id = group.group_id
    leaving = [member.member_id for member in members]
    downgrade = migration.downgrade(leaving, group, response, context)
    if downgrade is not None:
        return replace(downgrade, effects=[*lines, *downgrade.effects])
    decision = DecisionBuilder(effects=[*lines])
    for member_id in leaving:
        decision.records += records.member_tombstones(group_id, member_id)
        decision.effects += cancel_timers(group_id, member_id)
    for pattern in unused_regexes(group, members):
        decision.records.append(records.regular_expression_tombstone(group_id, pattern))
    new_hash = metadata_hash(topics_after(group, members), context.image)
    epoch = group.epoch + 1
    decision.log(events.epoch_bumped, group_id, epoch, reason)
    decision.records.append(records.group_epoch(group_id, epoch, new_hash))
    if len(leaving) == len(group.members):
        decision.log(events.group_emptied, group_id, epoch)
    return decision.build(response)


def _on_session_timeout(
    group_id: str, member_id: str, groups: "GroupCoordinatorState", context: GroupContext
) -> CoordinatorDecision[None]:
    group = groups.by_id.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None:
        return no_change()
    fenced = log_line(events.member_fenced, group_id, member_id, "the member session expired")
    reason = f"the session of member {member_id} expired"
    return fence([member], group, reason, None, context, fenced)


def _on_revocation_timeout(
    group_id: str,
    member_id: str,
    epoch: int,
    groups: "GroupCoordinatorState",
    context: GroupContext,
) -> CoordinatorDecision[None]:
    group = groups.by_id.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None or member.member_epoch != epoch:
        return no_change()
    failure = f"it failed to transition from epoch {epoch} within {member.rebalance_timeout_ms}ms"
    fenced = log_line(events.member_fenced, group_id, member_id, failure)
    reason = f"member {member_id} did not revoke its partitions"
    return fence([member], group, reason, None, context, fenced)
