"""The target assignment: what each member is to have, made anew when the group epoch moves on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.config.broker.groups import CONSUMER_ASSIGNORS
from barnabas.coordinator.groups.assignors import ASSIGNORS
from barnabas.coordinator.groups.assignors.model import (
    Assignment,
    Assignor,
    MemberSubscription,
    Subscribers,
    TopicShape,
)
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, most_wanted
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.metadata.image import MetadataImage

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


@dataclass(slots=True, frozen=True)
class MemberTarget:
    """One member's part of the target assignment."""

    epoch: int
    assignment: Assignment


def update_target(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    into: list[CoordinatorRecord],
) -> MemberTarget:
    """What member `new`, which was `old`, is to have when the group is at `epoch`.

    Between two assignments there is at least an interval, so that many who join at once cost one
    assignment and not one each; until then the last one holds.
    """
    last_id = _last_id(group, new)
    now_ms = groups.now_ms()
    if epoch <= group.assignment_epoch or _is_too_soon(groups, group, now_ms):
        return MemberTarget(group.assignment_epoch, group.target(last_id))
    members = {**group.members, new.member_id: new}
    if last_id != new.member_id:
        del members[last_id]  # the static member that it takes the place of
    subscribers = _subscribers(group, members, groups.image)
    assignments = _assignor(groups, group, old, new)(subscribers)
    for member_id in members:
        assignment = assignments.get(member_id, {})
        if assignment != group.targets.get(member_id):
            into.append(records.target_assignment(group.group_id, member_id, assignment))
    into.append(records.assignment_epoch(group.group_id, epoch, now_ms))
    return MemberTarget(epoch, assignments.get(new.member_id, {}))


def default_assignor(groups: "GroupCoordinatorState") -> str:
    """The assignor of groups in which nobody asks for one."""
    return supported_assignors(groups)[0]


def supported_assignors(groups: "GroupCoordinatorState") -> list[str]:
    """The names that a member may ask for."""
    return [CONSUMER_ASSIGNORS[each] for each in groups.settings.broker("group.consumer.assignors")]


def _is_too_soon(groups: "GroupCoordinatorState", group: ConsumerGroup, now_ms: int) -> bool:
    """Whether the last assignment was a moment ago. One that lies ahead was made by another clock,
    or before this one was set back."""
    interval_ms: int = groups.settings.group(group.group_id)["consumer.assignment.interval.ms"]
    return 0 <= now_ms - group.assignment_timestamp_ms < interval_ms


def _last_id(group: ConsumerGroup, member: ConsumerMember) -> str:
    """The id under which the group knows it, which a static member may be about to change."""
    known = group.static_member(member.instance_id)
    return known.member_id if known is not None else member.member_id


def _assignor(
    groups: "GroupCoordinatorState", group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember
) -> Assignor:
    wanted = dict(group.assignors)
    if old.server_assignor is not None:
        wanted[old.server_assignor] = wanted.get(old.server_assignor, 0) - 1
    if new.server_assignor is not None:
        wanted[new.server_assignor] = wanted.get(new.server_assignor, 0) + 1
    known = {name: count for name, count in wanted.items() if count > 0 and name in ASSIGNORS}
    return ASSIGNORS[most_wanted(known) or default_assignor(groups)]


def _subscribers(
    group: ConsumerGroup, members: dict[str, ConsumerMember], image: MetadataImage
) -> Subscribers:
    topics: dict[bytes, TopicShape] = {}
    resolved: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}

    def topic_ids(member: ConsumerMember) -> frozenset[bytes]:
        """Members mostly subscribe to the same: each subscription is looked up once."""
        subscription = (member.subscribed_topic_names, member.subscribed_topic_regex)
        found = resolved.get(subscription)
        if found is None:
            shapes = [_shape(image, name) for name in group.topics_of(member)]
            existing = {shape.topic_id: shape for shape in shapes if shape is not None}
            topics.update(existing)
            found = resolved[subscription] = frozenset(existing)
        return found

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
