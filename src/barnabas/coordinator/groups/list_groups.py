"""ListGroups (key 16): the groups of one shard."""

from typing import TYPE_CHECKING

from barnabas.wire.messages.groups import ListedGroup, ListGroupsRequest

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def list_groups(request: ListGroupsRequest, groups: "GroupCoordinatorState") -> list[ListedGroup]:
    """Returns the groups in any of the states and of any of the types; an empty filter is all.

    Case does not matter, and unknown names match nothing.
    """
    states = {name.strip().lower() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.group_type,
        )
        for group in groups.by_id.values()
        if (not states or group.state_name.lower() in states)
        and (not types or group.group_type in types)
    ]
