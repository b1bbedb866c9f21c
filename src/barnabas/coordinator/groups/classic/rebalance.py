"""How a classic group gets from one generation to the next, and what time does to it.

`prepare` asks everybody to join again, `complete` makes those who did the next generation. What
they return has to be written: the record of a group that nobody is left in. Who does not join in
time is given up; static members stay until their sessions end.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import joined, not_joined, not_synced, roster
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

Records = list[CoordinatorRecord]

log = logging.getLogger(__name__)


def proceed(groups: "GroupCoordinatorState", group: ClassicGroup, reason: str) -> Records:
    """Members came, changed or went: rebalance; if that is under way, maybe all are there now."""
    if group.can_rebalance:
        return prepare(groups, group, reason)
    if group.is_initial_rebalance or not group.has_all_joined:
        return []
    return complete(groups, group)


def prepare(groups: "GroupCoordinatorState", group: ClassicGroup, reason: str) -> Records:
    """Have all members join again."""
    log.info(
        "group %s: rebalances after generation %d: %s", group.group_id, group.generation, reason
    )
    if group.state is ClassicState.COMPLETING_REBALANCE:
        cancel_syncs(groups, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.unsynced.clear()
    groups.timers.cancel(_sync_key(group))
    group.is_initial_rebalance = group.is_empty
    group.has_new_members = False
    group.move(ClassicState.PREPARING_REBALANCE, groups.now_ms())
    if group.is_initial_rebalance:
        delay_ms = groups.settings.broker("group.initial.rebalance.delay.ms")
        _await_company(groups, group, delay_ms, group.rebalance_timeout_ms - delay_ms)
        return []
    if group.has_all_joined:
        return complete(groups, group)
    _await_joins(groups, group)
    return []


def complete(groups: "GroupCoordinatorState", group: ClassicGroup) -> Records:
    """Go on with those who joined."""
    groups.timers.cancel(_join_key(group))
    _give_up_absent(groups, group)
    if not group.elect_leader() and group.members:
        # Static members alone, none of whom is back: they come, or their sessions end.
        _await_joins(groups, group)
        return []
    group.begin_generation(groups.now_ms())
    group.is_initial_rebalance = False
    if group.is_empty:
        log.info("group %s: empty in generation %d", group.group_id, group.generation)
        return [group_record(group)]
    _tell_generation(groups, group)
    _await_syncs(groups, group)
    return []


def cancel_syncs(groups: "GroupCoordinatorState", group: ClassicGroup, code: ErrorCode) -> None:
    """There will be no assignment in this generation: those who wait for it are told."""
    waiting = []
    for member in group.members.values():
        member.assignment = b""
        if member.awaiting_sync is not None:
            waiting.append(member.awaiting_sync)
            member.awaiting_sync = None
            restart_session(groups, group, member)
    for answer in waiting:
        answer.complete(not_synced(code))


def mark_synced(groups: "GroupCoordinatorState", group: ClassicGroup, member_id: str) -> None:
    """The member asked for its assignment in time."""
    group.unsynced.discard(member_id)
    if not group.unsynced:
        groups.timers.cancel(_sync_key(group))


def restart_session(
    groups: "GroupCoordinatorState", group: ClassicGroup, member: ClassicMember
) -> None:
    """It was heard of just now."""
    expect(groups, group, member.member_id, member.session_timeout_ms)


def expect(
    groups: "GroupCoordinatorState", group: ClassicGroup, member_id: str, timeout_ms: int
) -> None:
    """Hear of a member, or of one that is to be, within that time; or do without it."""
    groups.timers.set(
        session_key(group, member_id), timeout_ms, partial(_session_due, groups, group, member_id)
    )


def dissolve(groups: "GroupCoordinatorState", group: ClassicGroup, code: ErrorCode) -> None:
    """The group is no more, or not here: nothing of it goes on, and whoever waits is told."""
    groups.timers.cancel(_join_key(group))
    groups.timers.cancel(_sync_key(group))
    group.move(ClassicState.DEAD, groups.now_ms())
    for member_id in [*group.members, *group.pending]:
        let_go(groups, group, member_id, code)


def _give_up_absent(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    absent = [
        member.member_id
        for member in group.members.values()
        if member.awaiting_join is None and not member.is_static
    ]
    for member_id in absent:
        let_go(groups, group, member_id)
    if absent:
        log.info("group %s: goes on without %s", group.group_id, ", ".join(absent))


def _tell_generation(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    """Answer all who joined, in one pass; the leader alone is told who they are."""
    waiting = []
    for member in group.members.values():
        answer = group.unpark(member)
        member.is_new = False
        restart_session(groups, group, member)
        if answer is not None:
            members = roster(group) if member.member_id == group.leader else []
            waiting.append((answer, joined(group, member.member_id, members)))
    for answer, response in waiting:
        answer.complete(response)


# What a group waits for: members to join or, after that, to sync; and to hear of each of them.


def _await_company(
    groups: "GroupCoordinatorState", group: ClassicGroup, delay_ms: int, remaining_ms: int
) -> None:
    """Let others join before the first generation; again and again, while some do and until
    the time that a rebalance may take is over."""
    groups.timers.set(
        _join_key(group), delay_ms, partial(_company_due, groups, group, delay_ms, remaining_ms)
    )


def _company_due(
    groups: "GroupCoordinatorState", group: ClassicGroup, delay_ms: int, remaining_ms: int
) -> Decision[None]:
    if not group.has_new_members or remaining_ms <= 0:
        return _joins_due(groups, group)
    group.has_new_members = False
    longest_ms = groups.settings.broker("group.initial.rebalance.delay.ms")
    _await_company(groups, group, min(longest_ms, remaining_ms), remaining_ms - delay_ms)
    return _decided()


def _await_joins(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    groups.timers.set(
        _join_key(group), group.rebalance_timeout_ms, partial(_joins_due, groups, group)
    )


def _joins_due(groups: "GroupCoordinatorState", group: ClassicGroup) -> Decision[None]:
    if group.state is not ClassicState.PREPARING_REBALANCE:
        return _decided()
    return _decided(complete(groups, group))


def _await_syncs(groups: "GroupCoordinatorState", group: ClassicGroup) -> None:
    groups.timers.set(
        _sync_key(group), group.rebalance_timeout_ms, partial(_syncs_due, groups, group)
    )


def _syncs_due(groups: "GroupCoordinatorState", group: ClassicGroup) -> Decision[None]:
    if not group.unsynced:
        return _decided()
    silent = sorted(group.unsynced)
    for member_id in silent:
        let_go(groups, group, member_id)
    return _decided(prepare(groups, group, f"no SyncGroup from {', '.join(silent)}"))


def _session_due(
    groups: "GroupCoordinatorState", group: ClassicGroup, member_id: str
) -> Decision[None]:
    member = group.members.get(member_id)
    if member is None and member_id not in group.pending:
        return _decided()
    if member is not None and member.is_excused:
        return _decided()  # its session begins anew when it is answered
    log.info("group %s: member %s is gone: its session ended", group.group_id, member_id)
    let_go(groups, group, member_id)
    records: Records = []
    if group.state is ClassicState.PREPARING_REBALANCE:
        # Unlike one that leaves, this ends the wait for company before a first generation too.
        if group.has_all_joined:
            records = complete(groups, group)
    elif member is not None:
        records = prepare(groups, group, f"the session of {member_id} ended")
    return _decided(records)


def _decided(records: Sequence[CoordinatorRecord] = ()) -> Decision[None]:
    """Time has had its way, and need not try again. Should the record of an empty group be lost,
    then whoever loads the one before lets silent members go as well."""
    return Decision(PendingResponse.completed(None), records, is_replayed=False)


def _join_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic joins", group.group_id)


def _sync_key(group: ClassicGroup) -> tuple[str, str]:
    return ("classic syncs", group.group_id)


def let_go(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member_id: str,
    code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID,
) -> None:
    """Take a member out, or one that was to be. If it waits for us it is told `code`: with
    UNKNOWN_MEMBER_ID it joins anew, under another id."""
    groups.timers.cancel(session_key(group, member_id))
    member = group.members.get(member_id)
    group.remove(member_id)
    if member is not None:
        dismiss(member, code)


def dismiss(member: ClassicMember, code: ErrorCode) -> None:
    """Tell `code` to whoever waits as this member, which is in no group now."""
    joining, member.awaiting_join = member.awaiting_join, None
    syncing, member.awaiting_sync = member.awaiting_sync, None
    if joining is not None:
        told_id = "" if code is ErrorCode.UNKNOWN_MEMBER_ID else member.member_id
        joining.complete(not_joined(code, told_id))
    if syncing is not None:
        syncing.complete(not_synced(code))


def session_key(group: ClassicGroup, member_id: str) -> tuple[str, str, str]:
    """The key of the timer that a member is let go by."""
    return ("classic session", group.group_id, member_id)
