"""The target assignment of each member, computed again when the group epoch is bumped."""

from dataclasses import dataclass

from barnabas.config.broker.groups import CONSUMER_ASSIGNORS
from barnabas.coordinator.decision import DecisionBuilder
from barnabas.coordinator.groups.assignors import ASSIGNORS
from barnabas.coordinator.groups.assignors.model import (
    Assignment,
    MemberSubscription,
    Subscribers,
    TopicShape,
)
from barnabas.coordinator.groups.consumer import events, records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, most_common
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.context import GroupContext
from barnabas.metadata.image import MetadataImage


@dataclass(slots=True, frozen=True)
class MemberTarget:
    """One member's part of the target assignment."""

    epoch: int
    assignment: Assignment


def update_target(
    old: ConsumerMember,
    new: ConsumerMember,
    epoch: int,
    group: ConsumerGroup,
    decision: DecisionBuilder,
    context: GroupContext,
) -> MemberTarget:
    """Returns the target of member `new`, which was `old`, when the group is at `epoch`.

    There is a minimum interval between two assignments, so that many members which join at once
    cost one assignment in total. Until then the last assignment is used.
    """
    last_id = _last_id(group, new)
    if epoch <= group.assignment_epoch or _is_too_soon(group, context):
        return MemberTarget(group.assignment_epoch, group.target(last_id))
    members = {**group.members, new.member_id: new}
    if last_id != new.member_id:
        del members[last_id]  # the static member that it replaces
    subscribers = _subscribers(group, members, context.image)
    assignor = _assignor(old, new, group, context)
    assignments = ASSIGNORS[assignor](subscribers)
    decision.log(events.target_computed, group.group_id, epoch, assignor, assignments)
    for member_id in members:
        assignment = assignments.get(member_id, {})
        if assignment != group.targets.get(member_id):
            decision.records.append(
                records.target_assignment(group.group_id, member_id, assignment)
            )
    decision.records.append(records.assignment_epoch(group.group_id, epoch, context.now_ms))
    return MemberTarget(epoch, assignments.get(new.member_id, {}))


def default_assignor(context: GroupContext) -> str:
    """Returns the assignor of groups in which no member names one."""
    return supported_assignors(context)[0]


def supported_assignors(context: GroupContext) -> list[str]:
    """Returns the names of assignors that a member may use."""
    names = context.settings.broker("group.consumer.assignors")
    return [CONSUMER_ASSIGNORS[name] for name in names]


def _is_too_soon(group: ConsumerGroup, context: GroupContext) -> bool:
    """Whether the last assignment is younger than the interval. One in the future was made by
    another clock, or before this clock was set back."""
    interval_ms: int = context.settings.group(group.group_id)["consumer.assignment.interval.ms"]
    return 0 <= context.now_ms - group.assignment_timestamp_ms < interval_ms


def _last_id(group: ConsumerGroup, member: ConsumerMember) -> str:
    """Returns the id of the member before this decision, which may replace a static member."""
    last = group.static_member(member.instance_id)
    return last.member_id if last is not None else member.member_id


def _assignor(
    old: ConsumerMember, new: ConsumerMember, group: ConsumerGroup, context: GroupContext
) -> str:
    """Returns the name of the assignor that most members name."""
    counts = dict(group.assignors)
    if old.server_assignor is not None:
        counts[old.server_assignor] = counts.get(old.server_assignor, 0) - 1
    if new.server_assignor is not None:
        counts[new.server_assignor] = counts.get(new.server_assignor, 0) + 1
    known = {name: count for name, count in counts.items() if count > 0 and name in ASSIGNORS}
    return most_common(known) or default_assignor(context)


def _subscribers(
    group: ConsumerGroup, members: dict[str, ConsumerMember], image: MetadataImage
) -> Subscribers:
    topics: dict[bytes, TopicShape] = {}
    resolved: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}

    def topic_ids(member: ConsumerMember) -> frozenset[bytes]:
        """Most members have the same subscription: each subscription is resolved once."""
        subscription = (member.subscribed_topic_names, member.subscribed_topic_regex)
        ids = resolved.get(subscription)
        if ids is None:
            shapes = [_shape(image, name) for name in group.topics_of(member)]
            existing = {shape.topic_id: shape for shape in shapes if shape is not None}
            topics.update(existing)
            ids = resolved[subscription] = frozenset(existing)
        return ids

    return Subscribers(
        {
            member_id: MemberSubscription(
                member_id,
                member.instance_id,
                topic_ids(member),
                group.target(_last_id(group, member)),
            )
            for member_id, member in members.items()
        },
        topics,
    )


def _shape(image: MetadataImage, name: str) -> TopicShape | None:
    topic = image.topics.by_name(name)
    return TopicShape(topic.topic_id, name, len(topic.partitions)) if topic is not None else None
