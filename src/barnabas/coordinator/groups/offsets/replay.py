"""Takes records of offsets into the state, whether they were just written or are being loaded."""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.records import CoordinatorRecord

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def replay(groups: "GroupCoordinatorState", record: CoordinatorRecord, producer_id: int) -> None:
    key, committed, _ = record
    if committed is None:
        groups.offsets.remove(key)
        return
    if key.group not in groups.by_id:
        # Somebody commits who is no member of anything: the group is there to keep offsets.
        groups.by_id[key.group] = ClassicGroup(key.group, groups.now_ms())
    groups.offsets.put(key, committed, producer_id)


def replay_end(groups: "GroupCoordinatorState", producer_id: int, committed: bool) -> None:
    groups.offsets.end(producer_id, committed)
