"""The world of a run: a broker, a network and checkers, drawn from one seed."""

from pathlib import Path
from random import Random

from tests.simulation.coordinator.checkers.commits import Commits
from tests.simulation.coordinator.checkers.loaded_state import LoadedState
from tests.simulation.coordinator.checkers.ownership import Ownership
from tests.simulation.coordinator.checkers.records import Records
from tests.simulation.coordinator.checkers.response_counts import ResponseCounts
from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.consumer import HEARTBEAT_MS, SESSION_MS
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.metadata import Metadata
from tests.simulation.coordinator.network import ClientNetwork
from tests.simulation.coordinator.node import Node
from tests.simulation.world.clock import SimulatedLoop
from tests.simulation.world.events import Events

from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.records import GROUPS_TOPIC, TRANSACTIONS_TOPIC

TOPICS = {"red": 4, "blue": 3}
"""The topics that groups consume."""
MAX_PARTITIONS = 6
INPUT, OUTPUT = "input", "output"
INPUT_PARTITIONS, OUTPUT_PARTITIONS, INTERNAL_PARTITIONS = 3, 2, 2

INPUT_RECORDS = 40
INPUT_EVERY_MS = 1_500
"""How often every input partition gets a record."""

SETTINGS = {
    "group_initial_rebalance_delay_ms": 300,
    "group_consumer_min_session_timeout_ms": SESSION_MS,
    "group_consumer_session_timeout_ms": SESSION_MS,
    "group_consumer_min_heartbeat_interval_ms": HEARTBEAT_MS,
    "group_consumer_heartbeat_interval_ms": HEARTBEAT_MS,
    "group_consumer_assignment_interval_ms": 500,
    "transaction_abort_timed_out_transaction_cleanup_interval_ms": 1_000,
    "offsets_topic_num_partitions": INTERNAL_PARTITIONS,
    "transaction_state_log_num_partitions": INTERNAL_PARTITIONS,
}


class CoordinatorWorld:
    """The broker, its network, and the checkers. `loop` must be the current loop."""

    def __init__(self, seed: int, folder: Path, loop: SimulatedLoop) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = loop
        self.events = Events(loop)
        self.transaction_version = self.random.choice([1, 2, 2, 2])
        self.metadata = Metadata(transaction_version=self.transaction_version)
        self.node = Node(folder, self.metadata, loop, self.events, **SETTINGS)
        self.network = ClientNetwork(self.node, loop, self.events, self.random)
        self.node.start()
        for name, partitions in {
            **TOPICS,
            INPUT: INPUT_PARTITIONS,
            OUTPUT: OUTPUT_PARTITIONS,
            GROUPS_TOPIC: INTERNAL_PARTITIONS,
            TRANSACTIONS_TOPIC: INTERNAL_PARTITIONS,
        }.items():
            self.node.create_topic(name, partitions)
        self.output_partitions = [(OUTPUT, index) for index in range(OUTPUT_PARTITIONS)]
        self.ownership = Ownership()
        self.records = Records(self.node, self.output_partitions)
        self.loaded_state = LoadedState()
        self.response_counts = ResponseCounts()
        self.events.checkers = [
            self.ownership,
            Commits(self.ownership),
            self.records,
            self.loaded_state,
            self.response_counts,
        ]
        self._start_ms = loop.now_ms
        self._tags = 0
        loop.set_exception_handler(self.events.on_loop_exception)

    def add_partition(self, topic: str) -> None:
        """Adds a partition to a topic, up to a limit."""
        if len(self.partitions_of([topic])) < MAX_PARTITIONS:
            self.events.note("world", f"{topic} gets a partition")
            self.node.apply_metadata(self.metadata.add_partition(topic))

    # For clients

    def partitions_of(self, topics: list[str]) -> list[TopicPartition]:
        return [
            (name, index)
            for name in topics
            for index in sorted(self.metadata.image.topics.by_name(name).partitions)
        ]

    def topic_id(self, name: str) -> bytes:
        return self.metadata.image.topics.by_name(name).topic_id

    def topic_name(self, topic_id: bytes) -> str:
        return self.metadata.image.topics.by_id(topic_id).name

    def input_end(self, partition: TopicPartition) -> int:
        """Returns how many input records a partition has by now."""
        elapsed_ms = self.loop.now_ms - self._start_ms
        return min(INPUT_RECORDS, 1 + elapsed_ms // INPUT_EVERY_MS)

    def next_tag(self, client: Client) -> str:
        """Returns a unique name for a commit or a transaction."""
        self._tags += 1
        return f"{client.name}/{self._tags}"

    # For checkers

    def group(self, group_id: str) -> Group | None:
        """Returns the group of the coordinator."""
        shards = self.node.broker.groups.runtime.active_shards()
        return next(
            (shard.state.by_id[group_id] for shard in shards if group_id in shard.state.by_id), None
        )
