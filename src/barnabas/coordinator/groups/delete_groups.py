"""DeleteGroups of one group."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_groups import DeletableGroupResult

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def delete_group(groups: "GroupCoordinatorState", group_id: str) -> Decision[DeletableGroupResult]:
    """Take back a group that nobody is in, with all offsets that it committed or that wait for
    the end of a transaction."""
    group = groups.by_id.get(group_id)
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"There is no group {group_id}.")
    group.check_delete()
    tombstones = [CoordinatorRecord(key, None) for key in groups.offsets.keys_of(group_id)]
    # The group goes last: if the log takes only a part, the deletion can be asked for again.
    return Decision(
        DeletableGroupResult(group_id=group_id), tombstones + group.tombstones(), is_atomic=False
    )
