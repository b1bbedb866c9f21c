"""What a heartbeat, or a join by the classic protocol, makes of a member and its group."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.consumer import records, sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.reconciliation import Reported, reconcile
from barnabas.coordinator.groups.consumer.regexes import RegexChange, resubscribe
from barnabas.coordinator.groups.consumer.target_assignment import MemberTarget, update_target
from barnabas.coordinator.groups.consumer.topics import metadata_hash, topics_after
from barnabas.coordinator.records import CoordinatorRecord

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def advance(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    reported: Reported,
    into: list[CoordinatorRecord],
) -> ConsumerMember:
    """Let a member that was `old` and says it is `new` make one step.

    1. The member is written if it changed; the group epoch moves on if that changed what the
       group subscribes to, or if the topics themselves changed.
    2. A target assignment is made if the group epoch has moved on.
    3. The member is reconciled with it.
    """
    if new is old and _is_settled(group, old):
        return old
    if new != old:
        into.append(records.member(group.group_id, new))
    has_new_names = new.subscribed_topic_names != old.subscribed_topic_names
    regex_change = resubscribe(groups, group, old, new, into)
    is_due = has_new_names or regex_change is RegexChange.RESOLVED
    epoch = group.epoch
    if is_due or group.has_new_topics:
        epoch = _refresh(groups, group, old, new, is_due, into)
    target = update_target(groups, group, epoch, old, new, into)
    has_resubscribed = has_new_names or regex_change is not RegexChange.NONE
    return _reconcile(groups, group, new, target, reported, has_resubscribed, into)


def _is_settled(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether there is nothing to look at, as with nearly all heartbeats."""
    return (
        member.is_reconciled_to(group.assignment_epoch)
        and group.epoch == group.assignment_epoch
        and not group.has_new_topics
        and not group.regexes
    )


def _refresh(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    old: ConsumerMember,
    new: ConsumerMember,
    is_due: bool,
    into: list[CoordinatorRecord],
) -> int:
    """Look at the topics again; the group epoch, which has moved on if that `is_due` or if they
    have changed."""
    topics = topics_after(group, [old], new)
    if group.has_new_topics or topics != group.subscribed_topics.keys():
        new_hash = metadata_hash(topics, groups.image)
    else:
        new_hash = group.metadata_hash
    if group.has_partition_metadata:
        into.append(records.partition_metadata_tombstone(group.group_id))
    if not is_due and new_hash == group.metadata_hash:
        group.has_new_topics = False
        return group.epoch
    into.append(records.group_epoch(group.group_id, group.epoch + 1, new_hash))
    return group.epoch + 1


def _reconcile(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    member: ConsumerMember,
    target: MemberTarget,
    reported: Reported,
    has_resubscribed: bool,
    into: list[CoordinatorRecord],
) -> ConsumerMember:
    if not has_resubscribed and member.is_reconciled_to(target.epoch):
        return member
    wanted = group.topics_of(member)

    def is_subscribed(topic_id: bytes) -> bool:
        topic = groups.image.topics.by_id(topic_id)
        return topic is not None and topic.name in wanted

    reconciled = reconcile(
        member,
        target.epoch,
        target.assignment,
        reported=reported,
        is_subscribed=is_subscribed,
        is_owned=group.is_owned,
        has_resubscribed=has_resubscribed,
    )
    if reconciled != member:
        into.append(records.current_assignment(group.group_id, reconciled))
        sessions.watch_revocation(groups, group.group_id, reconciled)
    return reconciled
