"""Time limits of members: to heartbeat, and to give back what they are asked to.

Every alarm looks at the member as it is when it rings, so one that comes too late does nothing.
"""

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.consumer import migration, records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.groups.consumer.topics import (
    metadata_hash,
    regexes_dropped,
    topics_after,
)
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

R = TypeVar("R")

log = logging.getLogger(__name__)


def start_session(
    groups: "GroupCoordinatorState", group_id: str, member_id: str, timeout_ms: int | None = None
) -> None:
    """The member was heard of: it is given a session timeout more, the group's if none is said."""
    if timeout_ms is None:
        timeout_ms = groups.settings.group(group_id)["consumer.session.timeout.ms"]
    groups.timers.set(
        ("session", group_id, member_id),
        timeout_ms,
        partial(_end_session, groups, group_id, member_id),
    )


def watch_revocation(groups: "GroupCoordinatorState", group_id: str, member: ConsumerMember) -> None:
    """A member that has to revoke partitions is given its rebalance timeout to do so. Members of
    the classic protocol have other limits."""
    if member.uses_classic_protocol:
        return
    key = ("rebalance", group_id, member.member_id)
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        give_up = partial(_end_revocation, groups, group_id, member.member_id, member.member_epoch)
        groups.timers.set(key, member.rebalance_timeout_ms, give_up)
    else:
        groups.timers.cancel(key)


def resume(
    groups: "GroupCoordinatorState", group_id: str, member_ids: Iterable[str], _refusal: KafkaError
) -> None:
    """Set the limits of members as they are without the change that could not be written."""
    group = groups.by_id.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return
    for member_id in member_ids:
        member = group.members.get(member_id)
        if member is not None:
            _watch(groups, group_id, member)


def stop(groups: "GroupCoordinatorState", group_id: str, member_id: str) -> None:
    """The member is gone, or another keeps its time."""
    for limit in ("session", "rebalance", "join", "sync"):
        groups.timers.cancel((limit, group_id, member_id))


def loaded(groups: "GroupCoordinatorState", group: ConsumerGroup) -> None:
    """Nobody knows when members were last heard of: all are given their full time. Nor is it
    known what became of the topics meanwhile."""
    group.has_new_topics = True
    for member in group.members.values():
        _watch(groups, group.group_id, member)


def fence(
    groups: "GroupCoordinatorState", group: ConsumerGroup, members: Sequence[ConsumerMember], response: R
) -> Decision[R]:
    """Take members out of the group, whether they leave or are thrown out."""
    group_id = group.group_id
    leaving = [member.member_id for member in members]
    moved = migration.downgrade(groups, group, leaving, response)
    if moved is not None:
        return moved
    written: list[CoordinatorRecord] = []
    for member_id in leaving:
        written += records.member_tombstones(group_id, member_id)
    for pattern in regexes_dropped(group, members):
        written.append(records.regular_expression_tombstone(group_id, pattern))
    new_hash = metadata_hash(topics_after(group, members), groups.image)
    written.append(records.group_epoch(group_id, group.epoch + 1, new_hash))
    for member_id in leaving:
        stop(groups, group_id, member_id)
    return Decision(response, written, refused=partial(resume, groups, group_id, leaving))


def nothing_more() -> Decision[None]:
    """What an alarm decides that finds nothing to do. It is not tried again, even if what was
    written before it is not committed in time."""
    return Decision(PendingResponse.completed(None))


def _end_session(groups: "GroupCoordinatorState", group_id: str, member_id: str) -> Decision[None]:
    return _fence(groups, group_id, member_id, None, "it was not heard of for too long")


def _end_revocation(groups: "GroupCoordinatorState", group_id: str, member_id: str, epoch: int) -> Decision[None]:
    return _fence(groups, group_id, member_id, epoch, "it did not revoke partitions in time")


def _fence(
    groups: "GroupCoordinatorState", group_id: str, member_id: str, epoch: int | None, reason: str
) -> Decision[None]:
    group = groups.by_id.get(group_id)
    member = group.members.get(member_id) if isinstance(group, ConsumerGroup) else None
    if not isinstance(group, ConsumerGroup) or member is None:
        return nothing_more()
    if epoch is not None and member.member_epoch != epoch:
        return nothing_more()
    log.info("group %s: member %s is fenced: %s", group_id, member_id, reason)
    # If it cannot be written, the alarm that called for it rings again.
    return fence(groups, group, [member], None)._replace(refused=None)


def _watch(groups: "GroupCoordinatorState", group_id: str, member: ConsumerMember) -> None:
    own_timeout_ms = member.classic.session_timeout_ms if member.classic is not None else None
    start_session(groups, group_id, member.member_id, own_timeout_ms)
    watch_revocation(groups, group_id, member)
