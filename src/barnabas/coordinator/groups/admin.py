"""ListGroups (key 16) and DeleteGroups (key 42): groups of any type."""

import logging
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision, log_line
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import DeletableGroupResult, ListedGroup, ListGroupsRequest

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

log = logging.getLogger(__name__)


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


def delete_group(
    group_id: str, groups: "GroupCoordinatorState"
) -> CoordinatorDecision[DeletableGroupResult]:
    """Deletes an empty group with all its offsets, those of open transactions included."""
    group = groups.by_id.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    group.check_delete()
    offsets = [CoordinatorRecord(key, None) for key in groups.offsets.keys_of(group_id)]
    deleted = log_line(_log_deleted, group_id, len(offsets))
    # The group comes last: if only a part can be written, the deletion can be requested again.
    return CoordinatorDecision(
        offsets + group.tombstones(),
        DeletableGroupResult(group_id=group_id),
        [deleted],
        is_atomic=False,
    )


def _log_deleted(group_id: str, offset_count: int) -> None:
    log.info("The group %s is deleted, with offsets of %d partitions", group_id, offset_count)
