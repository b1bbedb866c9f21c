"""Once all is well, every group becomes stable, every partition is owned, nobody waits forever."""

from tests.simulation.crowds import Crowd, GroupCrowd
from tests.simulation.world import World

MAX_WAIT_MS = 30_000
"""Longer than any rebalance or write may take."""


def what_is_missing(world: World, crowds: list[Crowd]) -> list[str]:
    """What has not come yet; nothing, if all groups are as they should be."""
    now_ms = world.loop.now_ms
    missing = []
    for crowd in crowds:
        if isinstance(crowd, GroupCrowd):
            group = world.group(crowd.group_id)
            state = group.state_name if group is not None else "not there"
            if state != "Stable":
                missing.append(f"{crowd.group_id} is {state}")
            for partition in crowd.partitions:
                owners = world.ownership.owners((crowd.group_id, partition), now_ms)
                if len(owners) != 1 or not owners[0].is_alive:
                    missing.append(f"{partition} of {crowd.group_id} is owned by {owners}")
    return missing


def who_waits_too_long(world: World) -> list[str]:
    now_ms = world.loop.now_ms
    return [
        f"#{each.number} of {each.client} ({type(each.request).__name__})"
        for each in world.network.unanswered.values()
        if now_ms - (each.delivered_ms or now_ms) > MAX_WAIT_MS
    ]
