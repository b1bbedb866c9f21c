"""One run: a node, a network, clients and checkers, all drawn from one seed."""

import logging
from pathlib import Path
from random import Random

from tests.simulation.checkers.commits import Commits
from tests.simulation.checkers.ownership import Ownership
from tests.simulation.checkers.records import Records
from tests.simulation.checkers.reloading import Reloading
from tests.simulation.checkers.tally import Tally
from tests.simulation.clients.client import Client
from tests.simulation.clients.consumer import HEARTBEAT_MS, SESSION_MS
from tests.simulation.clock import SimulatedLoop
from tests.simulation.events import Events, TopicPartition, Violation
from tests.simulation.metadata import Metadata
from tests.simulation.network import Network
from tests.simulation.node import Killed, Node

from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC

TOPICS = {"red": 4, "blue": 3}
"""What groups consume."""
MAX_PARTITIONS = 6
INPUT, OUTPUT = "input", "output"
INPUT_PARTITIONS, OUTPUT_PARTITIONS, INTERNAL_PARTITIONS = 3, 2, 2

INPUT_RECORDS = 40
INPUT_EVERY_MS = 1_500
"""How often there is another record in each input partition."""

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


class World:
    """Everything there is. `loop` must be the current one."""

    def __init__(self, seed: int, folder: Path, loop: SimulatedLoop) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.loop = loop
        self.events = Events(loop)
        self.transaction_version = self.random.choice([1, 2, 2, 2])
        self.metadata = Metadata(transaction_version=self.transaction_version)
        self.node = Node(folder, self.metadata, loop, self.events, **SETTINGS)
        self.network = Network(self.node, loop, self.events, self.random)
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
        self.reloading = Reloading()
        self.tally = Tally()
        self.events.checkers = [
            self.ownership,
            Commits(self.ownership),
            self.records,
            self.reloading,
            self.tally,
        ]
        self._began_ms = loop.now_ms
        self._tags = 0
        loop.set_exception_handler(self._escaped)

    def grow(self, topic: str) -> None:
        """One partition more, up to a limit."""
        if len(self.partitions_of([topic])) < MAX_PARTITIONS:
            self.events.note("world", f"{topic} grows")
            self.node.follow(self.metadata.add_partition(topic))

    # What clients know of the cluster

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
        """How many input records there are by now."""
        elapsed_ms = self.loop.now_ms - self._began_ms
        return min(INPUT_RECORDS, 1 + elapsed_ms // INPUT_EVERY_MS)

    def next_tag(self, client: Client) -> str:
        """A name for a commit or a transaction that no other has."""
        self._tags += 1
        return f"{client.name}/{self._tags}"

    # What the checkers look at

    def group(self, group_id: str) -> Group | None:
        """As the coordinator has it."""
        shards = self.node.broker.groups.runtime.active_shards()
        return next(
            (each.state.by_id[group_id] for each in shards if group_id in each.state.by_id), None
        )

    # What goes wrong outside of any client

    def _escaped(self, _: object, context: dict[str, object]) -> None:
        failure = context.get("exception")
        if not isinstance(failure, Killed):
            self.events.fail(failure or RuntimeError(str(context["message"])))


class ErrorsAreViolations(logging.Handler):
    """What the broker logs as an error, nobody should ever see."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.ERROR)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        if not isinstance(cause, Killed):
            violation = Violation(f"the broker logged: {record.getMessage()}")
            violation.__cause__ = cause
            self._events.fail(violation, "Log")
