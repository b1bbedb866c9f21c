"""Once all is well, every transaction ends in time, and readers get to the end of every log."""

from tests.simulation.events import TopicPartition
from tests.simulation.world import INTERNAL_PARTITIONS, World

from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.coordinator.transactions.metadata import TransactionMetadata, TransactionState


class Hanging:
    """Looks at the world after the last fault, until nothing hangs or time is up."""

    def __init__(self, world: World) -> None:
        self._world = world

    def missing(self) -> list[str]:
        return [*self._overdue(), *self._unreadable()]

    def _overdue(self) -> list[str]:
        """Transactions that are past their time."""
        now_ms = self._world.loop.now_ms
        return [
            f"{each.transactional_id} is {each.state.title}"
            for each in self._known()
            if each.is_ending
            or (each.state is TransactionState.ONGOING and now_ms > each.deadline_ms)
        ]

    def _unreadable(self) -> list[str]:
        """Logs whose end nobody gets to read, for a reason that no coordinator knows of."""
        unreadable = []
        offsets = [(GROUPS_TOPIC, index) for index in range(INTERNAL_PARTITIONS)]
        for place in [*self._world.output_partitions, *offsets]:
            partition = self._world.node.partition(*place)
            open_since = partition.log.first_unstable_offset
            if open_since is None and partition.last_stable_offset < partition.log.log_end_offset:
                unreadable.append(f"{place} is stable to {partition.last_stable_offset} only")
            if open_since is not None and not self._is_under_way(place):
                unreadable.append(f"a transaction in {place} is open since {open_since}")
        return unreadable

    def _is_under_way(self, place: TopicPartition) -> bool:
        """Whether a coordinator knows of every transaction that is open in a partition."""
        open_in = {
            each.producer_id
            for each in self._world.node.partition(*place).log.producers.entries.values()
            if each.transaction_first_offset >= 0
        }
        return open_in <= {
            each.producer_id
            for each in self._known()
            if each.state is TransactionState.ONGOING and place in each.partitions
        }

    def _known(self) -> list[TransactionMetadata]:
        shards = self._world.node.broker.transactions.runtime.active_shards()
        return [each for shard in shards for each in shard.state.by_id.values()]
