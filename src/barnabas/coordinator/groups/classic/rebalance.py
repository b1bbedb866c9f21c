"""How a classic group gets from one generation to the next, and what its timers do.

`prepare` has all members join again; `complete` makes those that did the next generation. Both
return the records to write: that of a group which has become empty. Members that do not join in
time are removed; static members stay until their sessions end.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision, StartTimer
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import (
    join_error,
    join_response,
    members_of,
    sync_error,
)
from barnabas.coordinator.groups.context import GroupContext
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

Records = list[CoordinatorRecord]

log = logging.getLogger(__name__)


def proceed(
    group: ClassicGroup, reason: str, groups: "GroupCoordinatorState", context: GroupContext
) -> Records:
    """Members joined, changed or left: prepares a rebalance, or completes the one under way if
    all members have joined."""
    if group.can_rebalance:
        return prepare(group, reason, groups, context)
    if group.is_initial_rebalance or not group.has_all_joined:
        return []
    return complete(group, groups, context)


def prepare(
    group: ClassicGroup, reason: str, groups: "GroupCoordinatorState", context: GroupContext
) -> Records:
    """Has all members join again."""
    log.info(
        "Preparing to rebalance group %s in state %s with old generation %d (reason: %s)",
        group.group_id,
        group.state,
        group.generation,
        reason,
    )
    if group.state is ClassicState.COMPLETING_REBALANCE:
        cancel_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, groups)
    group.unsynced.clear()
    groups.timers.cancel(_sync_key(group))
    group.is_initial_rebalance = group.is_empty
    group.has_new_members = False
    group.transition(ClassicState.PREPARING_REBALANCE, context.now_ms)
    if group.is_initial_rebalance:
        delay_ms = context.settings.broker("group.initial.rebalance.delay.ms")
        _await_members(group, delay_ms, group.rebalance_timeout_ms - delay_ms, groups)
        return []
    if group.has_all_joined:
        return complete(group, groups, context)
    _await_joins(group, groups)
    return []


def complete(
    group: ClassicGroup, groups: "GroupCoordinatorState", context: GroupContext
) -> Records:
    """Begins the next generation with the members that joined."""
    groups.timers.cancel(_join_key(group))
    _remove_absent(group, groups)
    if not group.elect_leader() and group.members:
        # Only static members are left, and none of them has joined: they do, or time out.
        _await_joins(group, groups)
        return []
    group.begin_generation(context.now_ms)
    group.is_initial_rebalance = False
    if group.is_empty:
        log.info("Group %s with generation %d is now empty", group.group_id, group.generation)
        return [group_record(group)]
    log.info(
        "Stabilized group %s generation %d with %d members",
        group.group_id,
        group.generation,
        len(group.members),
    )
    _complete_joins(group, groups)
    _await_syncs(group, groups)
    return []


def cancel_syncs(group: ClassicGroup, code: ErrorCode, groups: "GroupCoordinatorState") -> None:
    """There is no assignment in this generation: members that wait for it get the error."""
    pending = []
    for member in group.members.values():
        member.assignment = b""
        if member.pending_sync is not None:
            pending.append(member.pending_sync)
            member.pending_sync = None
            groups.timers.start(session_timer(group, member))
    for response in pending:
        response.complete(sync_error(code))


def mark_synced(group: ClassicGroup, member_id: str, groups: "GroupCoordinatorState") -> None:
    """The member has sent SyncGroup in time."""
    group.unsynced.discard(member_id)
    if not group.unsynced:
        groups.timers.cancel(_sync_key(group))


def session_timer(group: ClassicGroup, member: ClassicMember) -> StartTimer:
    """Returns the timer that removes a member which is silent for its session timeout."""
    return member_timer(group, member.member_id, member.session_timeout_ms)


def member_timer(group: ClassicGroup, member_id: str, timeout_ms: int) -> StartTimer:
    """Returns the timer that removes a member, or a pending member."""
    return StartTimer(
        session_key(group, member_id), timeout_ms, partial(_on_session_timeout, group, member_id)
    )


def cancel_session(group: ClassicGroup, member_id: str, groups: "GroupCoordinatorState") -> None:
    groups.timers.cancel(session_key(group, member_id))


def remove_member(
    group: ClassicGroup,
    member_id: str,
    groups: "GroupCoordinatorState",
    code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID,
) -> None:
    """Removes a member or a pending member. Its pending responses get the error: with
    UNKNOWN_MEMBER_ID the client joins again under another id."""
    cancel_session(group, member_id, groups)
    member = group.members.get(member_id)
    group.remove(member_id)
    if member is not None:
        fail_pending(member, code)


def fail_pending(member: ClassicMember, code: ErrorCode) -> None:
    """Completes the pending responses of a member that is no longer in the group."""
    joining, member.pending_join = member.pending_join, None
    syncing, member.pending_sync = member.pending_sync, None
    if joining is not None:
        member_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
        joining.complete(join_error(code, member_id))
    if syncing is not None:
        syncing.complete(sync_error(code))


def dissolve(group: ClassicGroup, code: ErrorCode, groups: "GroupCoordinatorState") -> None:
    """The group no longer exists here: cancels its timers and fails all pending responses."""
    groups.timers.cancel(_join_key(group))
    groups.timers.cancel(_sync_key(group))
    group.state = ClassicState.DEAD
    for member_id in [*group.members, *group.pending]:
        remove_member(group, member_id, groups, code)


def _remove_absent(group: ClassicGroup, groups: "GroupCoordinatorState") -> None:
    absent = [
        member.member_id
        for member in group.members.values()
        if member.pending_join is None and not member.is_static
    ]
    for member_id in absent:
        remove_member(group, member_id, groups)
    if absent:
        log.info(
            "Group %s removed dynamic members who haven't joined: %s",
            group.group_id,
            ", ".join(absent),
        )


def _complete_joins(group: ClassicGroup, groups: "GroupCoordinatorState") -> None:
    """Responds to all members that joined, in one pass. The leader alone gets the members."""
    pending = []
    for member in group.members.values():
        response = group.unpark(member)
        member.is_new = False
        groups.timers.start(session_timer(group, member))
        if response is not None:
            members = members_of(group) if member.member_id == group.leader else []
            pending.append((response, join_response(group, member.member_id, members)))
    for response, value in pending:
        response.complete(value)


# The timers of a group: for members to join, to sync, and to heartbeat.


def _await_members(
    group: ClassicGroup, delay_ms: int, remaining_ms: int, groups: "GroupCoordinatorState"
) -> None:
    """Waits for more members before the first generation. The wait is repeated while members
    join, up to the rebalance timeout."""
    groups.timers.start(
        StartTimer(
            _join_key(group), delay_ms, partial(_on_delay_expired, group, delay_ms, remaining_ms)
        )
    )


def _on_delay_expired(
    group: ClassicGroup,
    delay_ms: int,
    remaining_ms: int,
    groups: "GroupCoordinatorState",
    context: GroupContext,
) -> CoordinatorDecision[None]:
    if not group.has_new_members or remaining_ms <= 0:
        return _on_join_timeout(group, groups, context)
    group.has_new_members = False
    max_delay_ms = context.settings.broker("group.initial.rebalance.delay.ms")
    next_delay_ms = min(max_delay_ms, remaining_ms)
    _await_members(group, next_delay_ms, remaining_ms - delay_ms, groups)
    return in_memory()


def _await_joins(group: ClassicGroup, groups: "GroupCoordinatorState") -> None:
    groups.timers.start(
        StartTimer(_join_key(group), group.rebalance_timeout_ms, partial(_on_join_timeout, group))
    )


def _on_join_timeout(
    group: ClassicGroup, groups: "GroupCoordinatorState", context: GroupContext
) -> CoordinatorDecision[None]:
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return in_memory()
    return in_memory(complete(group, groups, context))


def _await_syncs(group: ClassicGroup, groups: "GroupCoordinatorState") -> None:
    groups.timers.start(
        StartTimer(_sync_key(group), group.rebalance_timeout_ms, partial(_on_sync_timeout, group))
    )


def _on_sync_timeout(
    group: ClassicGroup, groups: "GroupCoordinatorState", context: GroupContext
) -> CoordinatorDecision[None]:
    if not group.unsynced:
        return in_memory()
    silent = sorted(group.unsynced)
    for member_id in silent:
        remove_member(group, member_id, groups)
    reason = f"removing {', '.join(silent)} on pending sync request expiration"
    return in_memory(prepare(group, reason, groups, context))


def _on_session_timeout(
    group: ClassicGroup, member_id: str, groups: "GroupCoordinatorState", context: GroupContext
) -> CoordinatorDecision[None]:
    member = group.members.get(member_id)
    if member is None and member_id not in group.pending:
        return in_memory()
    if member is not None and member.is_waiting:
        return in_memory()  # its session is restarted with the response
    log.info(
        "Member %s in group %s has failed, removing it from the group", member_id, group.group_id
    )
    remove_member(group, member_id, groups)
    records: Records = []
    if group.state is ClassicState.PREPARING_REBALANCE:
        # Unlike a member that leaves, this also ends the wait before a first generation.
        if group.has_all_joined:
            records = complete(group, groups, context)
    elif member is not None:
        reason = f"removing member {member_id} on heartbeat expiration"
        records = prepare(group, reason, groups, context)
    return in_memory(records)


def in_memory(records: Sequence[CoordinatorRecord] = ()) -> CoordinatorDecision[None]:
    """The decision of a timer. The group has changed already, so the timer must not retry. If the
    record of an empty group is lost, the coordinator that loads the one before it removes the
    silent members as well."""
    return CoordinatorDecision(records, PendingResponse.completed(None), is_replayed=False)


def session_key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    return ("classic session", group.group_id, member_id)


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic joins", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic syncs", group.group_id)
