"""Once all is well, every transaction ends in time, and readers get to the end of every log."""

from tests.simulation.world import INTERNAL_PARTITIONS, World

from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.coordinator.transactions.metadata import TransactionState


def what_hangs(world: World) -> list[str]:
    """Transactions that are past their time, and logs whose end nobody gets to read."""
    node = world.node
    hanging = []
    for shard in node.broker.transactions.runtime.active():
        for each in shard.state.known.values():
            overdue_ms = world.loop.now_ms - each.deadline_ms
            if each.is_ending or (each.state is TransactionState.ONGOING and overdue_ms > 0):
                hanging.append(f"{each.transactional_id} is {each.state.title}")
    offsets = [(GROUPS_TOPIC, index) for index in range(INTERNAL_PARTITIONS)]
    for place in [*world.output_partitions, *offsets]:
        partition = node.partition(*place)
        open_since = partition.log.first_unstable_offset
        if open_since is not None and not _is_under_way(world, place):
            hanging.append(f"a transaction in {place} is open since {open_since}")
        elif open_since is None and partition.last_stable_offset < partition.log.end_offset:
            hanging.append(f"{place} is stable to {partition.last_stable_offset} only")
    return hanging


def _is_under_way(world: World, place: tuple[str, int]) -> bool:
    """Whether a coordinator knows of every transaction that is open in a partition."""
    open_in = {
        each.producer_id
        for each in world.node.partition(*place).log.producers.entries.values()
        if each.transaction_start >= 0
    }
    known = {
        each.producer_id
        for shard in world.node.broker.transactions.runtime.active()
        for each in shard.state.known.values()
        if each.state is TransactionState.ONGOING and place in each.partitions
    }
    return open_in <= known
