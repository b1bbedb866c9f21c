"""One step of a member from its current assignment to its target.

A member first revokes the partitions that are not in its target, and stays at its epoch until it
has (UNREVOKED_PARTITIONS). Then it moves to the target epoch and is assigned the partitions that
are free. Those that another member still owns are assigned as soon as it has released them
(UNRELEASED_PARTITIONS). So no partition ever has two owners, in whatever order members take their
steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState, OwnedPartitions
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_groups import TopicPartitions

ReportedPartitions = Sequence[TopicPartitions] | None
"""The partitions that a member reports; None if it does not report any."""


def reconcile(
    member: ConsumerMember,
    target_epoch: int,
    target: Assignment,
    *,
    reported: ReportedPartitions,
    is_subscribed: Callable[[bytes], bool],
    is_owned: Callable[[bytes, int], bool],
    has_resubscribed: bool,
) -> ConsumerMember:
    """Returns the member after one step; the same if there is no step to take.

    `is_subscribed` says whether the member subscribes to a topic id, `is_owned` whether some
    member owns a partition. The target may be older than the member's subscription
    (`has_resubscribed`): a topic that the member has unsubscribed from is revoked at once.
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
    target = {
        topic_id: partitions for topic_id, partitions in target.items() if is_subscribed(topic_id)
    }
    kept, revoked = _split(member.assigned, target)
    if revoked and _has_any(revoked, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return _moved(member, member.member_epoch, state, kept, revoked)
    assigned, is_complete = _assign_free(member, kept, target, target_epoch, is_owned)
    state = MemberState.STABLE if is_complete else MemberState.UNRELEASED_PARTITIONS
    return _moved(member, target_epoch, state, assigned, {})


def _drop_topics(
    member: ConsumerMember, reported: ReportedPartitions, is_subscribed: Callable[[bytes], bool]
) -> ConsumerMember:
    """Revokes the topics that the member has unsubscribed from, within its epoch."""
    dropped = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if not is_subscribed(topic_id)
    }
    if not dropped:
        return member
    kept = {
        topic_id: partitions
        for topic_id, partitions in member.assigned.items()
        if topic_id not in dropped
    }
    pending = dict(member.pending_revocation)
    for topic_id, partitions in dropped.items():
        pending[topic_id] = {**pending.get(topic_id, {}), **partitions}
    if _has_any(pending, reported):
        state = MemberState.UNREVOKED_PARTITIONS
        return _moved(member, member.member_epoch, state, kept, pending)
    return _moved(member, member.member_epoch, member.state, kept, member.pending_revocation)


def _split(
    assigned: OwnedPartitions, target: Assignment
) -> tuple[OwnedPartitions, OwnedPartitions]:
    """Returns the partitions that the member keeps, and those that it has to revoke."""
    kept: OwnedPartitions = {}
    revoked: OwnedPartitions = {}
    for topic_id, partitions in assigned.items():
        target_partitions = target.get(topic_id, frozenset())
        for partition, epoch in partitions.items():
            part = kept if partition in target_partitions else revoked
            part.setdefault(topic_id, {})[partition] = epoch
    return kept, revoked


def _assign_free(
    member: ConsumerMember,
    kept: OwnedPartitions,
    target: Assignment,
    epoch: int,
    is_owned: Callable[[bytes, int], bool],
) -> tuple[OwnedPartitions, bool]:
    """Returns what it keeps with the free partitions of its target, and whether that is all."""
    assigned = {topic_id: dict(partitions) for topic_id, partitions in kept.items()}
    is_complete = True
    for topic_id, partitions in target.items():
        kept_partitions = kept.get(topic_id, {})
        own = member.pending_revocation.get(topic_id, {})
        for partition in partitions:
            if partition in kept_partitions:
                continue
            if partition not in own and is_owned(topic_id, partition):
                is_complete = False
            else:
                assigned.setdefault(topic_id, {})[partition] = epoch
    return assigned, is_complete


def _has_any(owned: OwnedPartitions, reported: ReportedPartitions) -> bool:
    """Whether the member owns some of these partitions. It does as long as it reports nothing."""
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
