"""DeleteGroups (key 42), for one group."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import DeletableGroupResult

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def delete_group(
    group_id: str, groups: "GroupCoordinatorState"
) -> CoordinatorDecision[DeletableGroupResult]:
    """Deletes an empty group with all its offsets, those of open transactions included."""
    group = groups.by_id.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group_id}.")
    group.check_delete()
    offsets = [CoordinatorRecord(key, None) for key in groups.offsets.keys_of(group_id)]
    # The group comes last: if only a part can be written, the deletion can be requested again.
    return CoordinatorDecision(
        offsets + group.tombstones(), DeletableGroupResult(group_id=group_id), is_atomic=False
    )
