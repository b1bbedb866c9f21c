"""Without faults, every transaction ends in time, and consumers reach the end of every log."""

from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.world import INTERNAL_PARTITIONS, CoordinatorWorld

from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.coordinator.transactions.metadata import TransactionMetadata, TransactionState


class HangingTransactions:
    """Called after the last fault until nothing is missing, or until the time is over."""

    def __init__(self, world: CoordinatorWorld) -> None:
        self._world = world

    def missing(self) -> list[str]:
        return [*self._overdue(), *self._unreadable()]

    def _overdue(self) -> list[str]:
        """Transactions after their timeout."""
        now_ms = self._world.loop.now_ms
        return [
            f"{transaction.transactional_id} is {transaction.state.title}"
            for transaction in self._transactions()
            if transaction.is_ending
            or (transaction.state is TransactionState.ONGOING and now_ms > transaction.deadline_ms)
        ]

    def _unreadable(self) -> list[str]:
        """Logs that cannot be read to their end because of a transaction without a coordinator."""
        unreadable = []
        offsets = [(GROUPS_TOPIC, index) for index in range(INTERNAL_PARTITIONS)]
        for topic_partition in [*self._world.output_partitions, *offsets]:
            partition = self._world.node.partition(*topic_partition)
            open_since = partition.log.producers.first_undecided_offset
            if open_since is None and partition.last_stable_offset < partition.log.log_end_offset:
                unreadable.append(
                    f"{topic_partition} is stable to {partition.last_stable_offset} only"
                )
            if open_since is not None and not self._has_coordinators(topic_partition):
                unreadable.append(f"a transaction in {topic_partition} is open since {open_since}")
        return unreadable

    def _has_coordinators(self, topic_partition: TopicPartition) -> bool:
        """Returns whether a coordinator has every transaction that is open in a partition."""
        open_in = {
            entry.producer_id
            for entry in self._world.node.partition(*topic_partition).log.producers.entries.values()
            if entry.transaction_first_offset >= 0
        }
        return open_in <= {
            transaction.producer_id
            for transaction in self._transactions()
            if transaction.state is TransactionState.ONGOING
            and topic_partition in transaction.partitions
        }

    def _transactions(self) -> list[TransactionMetadata]:
        shards = self._world.node.broker.transactions.runtime.active_shards()
        return [entry for shard in shards for entry in shard.state.by_id.values()]
