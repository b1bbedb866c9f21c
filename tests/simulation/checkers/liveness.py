"""Once all is well, every group becomes stable, every partition is owned, nobody waits forever."""

from tests.simulation.crowds import Crowd, GroupCrowd
from tests.simulation.world import INPUT_PARTITIONS, INPUT_RECORDS, World

MAX_WAIT_MS = 30_000
"""Longer than any rebalance or write may take."""


class Liveness:
    """Looks at the world after the last fault, until nothing is missing or time is up."""

    def __init__(self, world: World, crowds: list[Crowd]) -> None:
        self._world = world
        self._groups = [each for each in crowds if isinstance(each, GroupCrowd)]

    def missing(self) -> list[str]:
        return [*self._unstable(), *self._unowned(), *self._unanswered(), *self._unprocessed()]

    def _unstable(self) -> list[str]:
        groups = {each.group_id: self._world.group(each.group_id) for each in self._groups}
        return [
            f"{group_id} is {group.state_name if group is not None else 'not there'}"
            for group_id, group in groups.items()
            if group is None or group.state_name != "Stable"
        ]

    def _unowned(self) -> list[str]:
        now_ms = self._world.loop.now_ms
        owners = {
            (each.group_id, partition): self._world.ownership.owners(
                (each.group_id, partition), now_ms
            )
            for each in self._groups
            for partition in each.partitions
        }
        return [f"{place} is owned by nobody" for place, each in owners.items() if not each]

    def _unanswered(self) -> list[str]:
        now_ms = self._world.loop.now_ms
        return [
            f"#{each.number} of {each.client} ({type(each.request).__name__}) is not answered"
            for each in self._world.network.unanswered.values()
            if now_ms - (each.delivered_ms or now_ms) > MAX_WAIT_MS
        ]

    def _unprocessed(self) -> list[str]:
        left = INPUT_PARTITIONS * INPUT_RECORDS - len(self._world.records.seen)
        return [f"{left} input records are not processed"] if left else []
