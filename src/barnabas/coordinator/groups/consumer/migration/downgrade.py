"""From a consumer group to a classic group."""

import logging
from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
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
from barnabas.wire.errors import ProtocolViolation

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

R = TypeVar("R")

POLICIES: Final = frozenset({"downgrade", "bidirectional"})
"""Those that allow for it."""

log = logging.getLogger(__name__)


def downgrade(
    groups: "GroupCoordinatorState", group: ConsumerGroup, leaving: Collection[str], response: R
) -> Decision[R] | None:
    """What to decide if with these members the last of the consumer protocol leave, and classic
    ones stay; None if the group stays what it is."""
    left = [group.members[each] for each in leaving if each in group.members]
    consumers_left = sum(not member.uses_classic_protocol for member in left)
    if group.classic_member_count + consumers_left < len(group.members):
        return None
    staying = [each for member_id, each in group.members.items() if member_id not in leaving]
    because = f"{', '.join(leaving)} left, the last of the consumer protocol"
    return _as_classic(groups, group, staying, response, because)


def downgrade_by_replacing(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    former: ConsumerMember,
    joining: ConsumerMember,
    response: R,
) -> Decision[R] | None:
    """The same for a static member that comes back by the classic protocol, and was the last of
    the other: it has taken over what `former` had. If all else is settled nobody has to rebalance.
    """
    if former.uses_classic_protocol or group.classic_member_count + 1 < len(group.members):
        return None
    others = [each for each in group.members.values() if each is not former]
    is_settled = (
        joining.subscribed_topic_names == former.subscribed_topic_names
        and not former.subscribed_topic_regex
        and group.epoch == group.assignment_epoch
        and group.metadata_hash == metadata_hash(group.subscribed_topics, groups.image)
        and _held(joining) == group.target(former.member_id)
        and all(each.is_reconciled_to(group.epoch) for each in others)
    )
    because = None if is_settled else f"{joining.member_id} came back by the classic protocol"
    return _as_classic(groups, group, [*others, joining], response, because)


def _as_classic(
    groups: "GroupCoordinatorState",
    group: ConsumerGroup,
    members: list[ConsumerMember],
    response: R,
    because: str | None,
) -> Decision[R] | None:
    if not members or not _may_downgrade(groups, group, len(members)):
        return None
    classic = ClassicGroup(
        group.group_id,
        groups.now_ms(),
        state=ClassicState.STABLE,
        generation=group.epoch,
        protocol_type=CONSUMER,
    )
    for member in members:
        classic.add(_classic_member_of(member), CONSUMER)
    classic.protocol = classic.elect_protocol()
    if because is not None:
        classic.leader = None  # so that whoever loads the record has the group rebalance
    try:
        for member in members:
            drafted = classic.members[member.member_id]
            version = version_of(drafted.metadata(classic.protocol))
            drafted.assignment = write_assignment(_held(member), version, groups.image)
    except ProtocolViolation as violation:
        log.warning("group %s: stays with the consumer protocol: %s", group.group_id, violation)
        return None
    log.info(
        "group %s: moves to the classic protocol with %d members", group.group_id, len(members)
    )
    key = ("downgrade", group.group_id)
    resume = partial(_resume, groups, classic, list(group.members), because)

    def resume_now() -> None:
        if key in groups.timers:
            groups.timers.cancel(key)
            groups.shard.write(lambda _: resume())

    groups.timers.set(key, 0, resume)  # at the latest: what is replayed may not be committed yet
    records = [*group.tombstones(), group_record(classic)]
    return Decision(response, records, committed=resume_now)


def _may_downgrade(groups: "GroupCoordinatorState", group: ConsumerGroup, size: int) -> bool:
    policy = groups.settings.broker("group.consumer.migration.policy")
    if policy.lower() not in POLICIES:
        reason = "group.consumer.migration.policy does not allow for a downgrade"
    elif size > groups.settings.broker("group.max.size"):
        reason = f"{size} classic members are more than group.max.size"
    else:
        return True
    log.info("group %s: stays with the consumer protocol: %s", group.group_id, reason)
    return False


def _classic_member_of(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        {each.name: each.metadata for each in member.classic.supported_protocols},
    )


def _held(member: ConsumerMember) -> Assignment:
    """What a member may be consuming. That is not its target, which others may still hold: should
    the group move back before it has rebalanced, then only this is true."""
    return {
        topic_id: frozenset(member.assigned.get(topic_id, ())).union(
            member.pending_revocation.get(topic_id, ())
        )
        for topic_id in member.assigned.keys() | member.pending_revocation.keys()
    }


def _resume(
    groups: "GroupCoordinatorState", draft: ClassicGroup, former_ids: list[str], because: str | None
) -> Decision[None]:
    """The batch has been replayed, if it could be written: have the new group go on.

    Its record has told but one protocol of each member; here they get back what they offer.
    """
    group = groups.by_id.get(draft.group_id)
    written: rebalance.Records = []
    if isinstance(group, ClassicGroup):
        for member_id in former_ids:
            sessions.stop(groups, group.group_id, member_id)
        for member in group.members.values():
            drafted = draft.members.get(member.member_id)
            if drafted is not None and member.protocols.items() <= drafted.protocols.items():
                group.change_terms(member, drafted.terms)  # it has not joined anew since
            rebalance.restart_session(groups, group, member)
        if because is not None and group.state is ClassicState.STABLE:
            written = rebalance.prepare(groups, group, because)
    return Decision(PendingResponse.completed(None), written, is_replayed=False)  # done, and not to be done again
