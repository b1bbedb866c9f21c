"""Members that are taken out of a classic group, and what is said to whoever waits as them."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.classic.responses import not_joined, not_synced
from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import Groups


def let_go(
    groups: "Groups",
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
