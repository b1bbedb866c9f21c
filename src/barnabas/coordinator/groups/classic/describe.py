"""DescribeGroups (key 15): state and members of a classic group.

A group that does not exist is dead; from v6 on that is an error as well.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.groups import DescribedGroup, DescribedGroupMember

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_ERROR_MESSAGES = 6


def describe(
    group_id: str, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> DescribedGroup:
    group = groups.by_id.get(group_id)
    if not isinstance(group, ClassicGroup):
        return _not_found(group_id, context, exists=group is not None)
    # The protocol and the members' metadata are valid in a stable group only.
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _not_found(group_id: str, context: GroupRequestContext, *, exists: bool) -> DescribedGroup:
    group = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD)
    if context.client.api_version >= FIRST_VERSION_WITH_ERROR_MESSAGES:
        group.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        reason = "is not a classic group" if exists else "not found"
        group.error_message = f"Group {group_id} {reason}."
    return group
