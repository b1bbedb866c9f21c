"""What a heartbeat, or a join by the classic protocol, changes in a member and its group."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import DecisionBuilder
from barnabas.coordinator.groups.consumer import events, records, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.reconciliation import ReportedPartitions, reconcile
from barnabas.coordinator.groups.consumer.regexes import RegexChange, update_regexes
from barnabas.coordinator.groups.consumer.target_assignment import MemberTarget, update_target
from barnabas.coordinator.groups.consumer.topics import (
    MarkTopicsChecked,
    metadata_hash,
    topics_after,
)
from barnabas.coordinator.groups.context import GroupContext, GroupRequestContext

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def update_member(
    old: ConsumerMember,
    new: ConsumerMember,
    reported: ReportedPartitions,
    group: ConsumerGroup,
    decision: DecisionBuilder,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> ConsumerMember:
    """Updates the member `old` to `new`, and returns it after one step to its target.

    1. The member is written if it changed. The group epoch is bumped if that changed what the
       group subscribes to, or if the topics themselves changed.
    2. A new target assignment is computed if the group epoch was bumped.
    3. The member is reconciled with its target.
    """
    if new is old and has_nothing_to_do(group, old):
        return old
    is_joining = new.member_id not in group.members and group.static_member(new.instance_id) is None
    if is_joining:
        decision.log(events.member_joined, group.group_id, new)
    if new != old:
        decision.records.append(records.member(group.group_id, new))
    has_new_names = new.subscribed_topic_names != old.subscribed_topic_names
    regex_change = update_regexes(old, new, group, decision, groups, context)
    must_bump = has_new_names or regex_change is RegexChange.RESOLVED
    epoch = group.epoch
    if must_bump or group.has_new_topics:
        change = "joined" if is_joining else "updated its subscribed topics"
        reason = f"member {new.member_id} {change}" if must_bump else None
        epoch = _update_epoch(old, new, reason, group, decision, context)
    target = update_target(old, new, epoch, group, decision, context)
    has_resubscribed = has_new_names or regex_change is not RegexChange.NONE
    return _reconcile(new, target, reported, has_resubscribed, group, decision, context)


def has_nothing_to_do(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a heartbeat of the member, which is as before, changes nothing, as nearly all
    heartbeats."""
    return (
        member.is_reconciled_to(group.assignment_epoch)
        and group.epoch == group.assignment_epoch
        and not group.has_new_topics
        and not group.regexes
    )


def _update_epoch(
    old: ConsumerMember,
    new: ConsumerMember,
    reason: str | None,
    group: ConsumerGroup,
    decision: DecisionBuilder,
    context: GroupContext,
) -> int:
    """Returns the group epoch, which is bumped for the `reason`, or if the topics have changed."""
    topics = topics_after(group, [old], new)
    if group.has_new_topics or topics != group.subscribed_topics.keys():
        new_hash = metadata_hash(topics, context.image)
    else:
        new_hash = group.metadata_hash
    if group.has_partition_metadata:
        decision.records.append(records.partition_metadata_tombstone(group.group_id))
    if reason is None and new_hash == group.metadata_hash:
        decision.effects.append(MarkTopicsChecked(group.group_id))
        return group.epoch
    epoch = group.epoch + 1
    reason = reason or "its topics or their partitions changed"
    decision.log(events.epoch_bumped, group.group_id, epoch, reason)
    decision.records.append(records.group_epoch(group.group_id, epoch, new_hash))
    return epoch


def _reconcile(
    member: ConsumerMember,
    target: MemberTarget,
    reported: ReportedPartitions,
    has_resubscribed: bool,
    group: ConsumerGroup,
    decision: DecisionBuilder,
    context: GroupContext,
) -> ConsumerMember:
    if not has_resubscribed and member.is_reconciled_to(target.epoch):
        return member
    subscribed = group.topics_of(member)

    def is_subscribed(topic_id: bytes) -> bool:
        topic = context.image.topics.by_id(topic_id)
        return topic is not None and topic.name in subscribed

    reconciled = reconcile(
        member,
        target.epoch,
        target.assignment,
        reported=reported,
        is_subscribed=is_subscribed,
        is_owned=group.is_owned,
        has_resubscribed=has_resubscribed,
    )
    if (reconciled.assigned, reconciled.pending_revocation) != (
        member.assigned,
        member.pending_revocation,
    ):
        assigned = events.listed(reconciled.assigned, context.image)
        revoked = events.listed(reconciled.pending_revocation, context.image)
        decision.log(events.assignment_changed, group.group_id, reconciled, assigned, revoked)
    if reconciled != member:
        decision.records.append(records.current_assignment(group.group_id, reconciled))
        decision.effects += sessions.revocation_timer(group.group_id, reconciled)
    return reconciled
