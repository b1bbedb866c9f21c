"""Without faults, every group becomes stable and every partition is owned and processed."""

from tests.simulation.coordinator.client_groups import ClientGroup, MemberClients
from tests.simulation.coordinator.world import INPUT_PARTITIONS, INPUT_RECORDS, CoordinatorWorld

MAX_WAIT_MS = 30_000
"""Longer than any rebalance or write may take."""


class Liveness:
    """Called after the last fault until nothing is missing, or until the time is over."""

    def __init__(self, world: CoordinatorWorld, client_groups: list[ClientGroup]) -> None:
        self._world = world
        self._groups = [clients for clients in client_groups if isinstance(clients, MemberClients)]

    def missing(self) -> list[str]:
        return [
            *self._unstable(),
            *self._unowned(),
            *self._without_response(),
            *self._unprocessed(),
        ]

    def _unstable(self) -> list[str]:
        groups = {clients.group_id: self._world.group(clients.group_id) for clients in self._groups}
        return [
            f"{group_id} is {group.state_name if group is not None else 'missing'}"
            for group_id, group in groups.items()
            if group is None or group.state_name != "Stable"
        ]

    def _unowned(self) -> list[str]:
        now_ms = self._world.loop.now_ms
        owners = {
            (clients.group_id, partition): self._world.ownership.owners(
                (clients.group_id, partition), now_ms
            )
            for clients in self._groups
            for partition in clients.partitions
        }
        return [
            f"{group_partition} has no owner"
            for group_partition, members in owners.items()
            if not members
        ]

    def _without_response(self) -> list[str]:
        now_ms = self._world.loop.now_ms
        return [
            f"#{sent.number} of {sent.client} ({type(sent.request).__name__}) has no response"
            for sent in self._world.network.pending.values()
            if now_ms - (sent.delivered_ms or now_ms) > MAX_WAIT_MS
        ]

    def _unprocessed(self) -> list[str]:
        left = INPUT_PARTITIONS * INPUT_RECORDS - len(self._world.records.seen)
        return [f"{left} input records are not processed"] if left else []
