"""One step of a member from what it has to what it is to have.

A member first gives back what it is not to have any more, and stays in its epoch until it has
(UNREVOKED_PARTITIONS). Then it moves to the target epoch and is given what is free; what another
still has is given as soon as that one has let go (UNRELEASED_PARTITIONS). So no partition ever
has two owners, however the steps of the members are mixed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.consumer.member import (
    ConsumerMember,
    MemberState,
    OwnedPartitions,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import TopicPartitions

Reported = Sequence[TopicPartitions] | None
"""The partitions that a member says it has; None if it does not say."""


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    *,
    reported: Reported,
    is_subscribed: Callable[[bytes], bool],
    is_owned: Callable[[bytes, int], bool],
    has_resubscribed: bool,
) -> ConsumerMember:
    """The member after one step; the same if there is none to make.

    `is_subscribed` tells whether the member wants a topic (of the id), `is_owned` whether some
    member has a partition. The target may be older than the member's subscription
    (`has_resubscribed`): a topic that the member does not want any more is taken from it at once.
    """
    match member.state:
        case MemberState.STABLE if member.member_epoch == target_epoch:
            return _drop_topics(member, reported, is_subscribed) if has_resubscribed else member
        case MemberState.UNREVOKED_PARTITIONS if _has_any(member.pending_revocation, reported):
            return _drop_topics(member, reported, is_subscribed) if has_resubscribed else member
        case MemberState.UNKNOWN if reported is None or reported:
            raise KafkaError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                f"Member {member.member_id} is in a state that this coordinator does not know. "
                "It must abandon all its partitions and rejoin.",
            )
    wanted = {topic_id: each for topic_id, each in target.items() if is_subscribed(topic_id)}
    kept, revoked = _split(member.assigned, wanted)
    if revoked and _has_any(revoked, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return _moved(member, member.member_epoch, state, kept, revoked)
    assigned, is_complete = _give(member, kept, wanted, target_epoch, is_owned)
    state = MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS
    return _moved(member, target_epoch, state, assigned, {})


def _drop_topics(
    member: ConsumerMember, reported: Reported, is_subscribed: Callable[[bytes], bool]
) -> ConsumerMember:
    """Take back what the member does not want any more, within its epoch."""
    dropped = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if not is_subscribed(topic_id)
    }
    if not dropped:
        return member
    kept = {each: member.assigned[each] for each in member.assigned if each not in dropped}
    pending = dict(member.pending_revocation)
    for topic_id, partitions in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if _has_any(pending, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return _moved(member, member.member_epoch, state, kept, pending)
    return _moved(member, member.member_epoch, member.state, kept, member.pending_revocation)


def _split(
    assigned: OwnedPartitions, wanted: Assignment
) -> tuple[OwnedPartitions, OwnedPartitions]:
    """What stays with the member, and what it has to give back."""
    kept: OwnedPartitions = {}
    revoked: OwnedPartitions = {}
    for topic_id, partitions in assigned.items():
        target = wanted.get(topic_id, frozenset())
        for partition, epoch in partitions.items():
            part = kept if partition in target else revoked
            part.setdefault(topic_id, {})[partition] = epoch
    return kept, revoked


def _give(
    member: ConsumerMember,
    kept: OwnedPartitions,
    wanted: Assignment,
    epoch: int,
    is_owned: Callable[[bytes, int], bool],
) -> tuple[OwnedPartitions, bool]:
    """What it keeps and all that is free of the rest; whether that is all it wants."""
    assigned = {topic_id: dict(partitions) for topic_id, partitions in kept.items()}
    is_complete = True
    for topic_id, partitions in wanted.items():
        has = kept.get(topic_id, {})
        own = member.pending_revocation.get(topic_id, {})
        for partition in partitions:
            if partition in has:
                continue
            if partition not in own and is_owned(topic_id, partition):
                is_complete = False
            else:
                assigned.setdefault(topic_id, {})[partition] = epoch
    return assigned, is_complete


def _has_any(owned: OwnedPartitions, reported: Reported) -> bool:
    """Whether the member has some of these partitions; it has, as long as it does not say."""
    if reported is None:
        return True
    return any(
        partition in owned.get(topic.topic_id, ())
        for topic in reported
        for partition in topic.partitions
    )


def _moved(
    member: ConsumerMember,
    epoch: int,
    state: MemberState,
    assigned: OwnedPartitions,
    pending_revocation: OwnedPartitions,
) -> ConsumerMember:
    return replace(
        member,
        member_epoch=epoch,
        previous_member_epoch=member.member_epoch,
        state=state,
        assigned=assigned,
        pending_revocation=pending_revocation,
    )
