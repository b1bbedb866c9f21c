"""Joins the coordinators with the partitions that they live in."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.coordinator.groups.coordinator import GroupCoordinator
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.ports import Committed
from barnabas.coordinator.runtime import Runtime
from barnabas.coordinator.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.metadata.states import PartitionState
from barnabas.node.coordinator_gauges import CoordinatorGauges
from barnabas.node.producer_id_blocks import ControllerBlocks
from barnabas.replication import Partition
from barnabas.replication.partition import ALL_IN_SYNC
from barnabas.server.broker import Broker
from barnabas.server.brokers import Brokers
from barnabas.server.couriers import Couriers
from barnabas.server.participants import ClusterParticipants
from barnabas.server.promises import when_promised
from barnabas.server.purgatory import Purgatory
from barnabas.server.verifications import Verifications
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.peer import Peers


def coordinate(broker: Broker, peers: Peers) -> "Elections":
    """Give a broker its coordinators, and the way to those of other brokers."""
    brokers = Brokers(
        broker.node_id, lambda: broker.image, peers, broker.settings.inter_broker_listener_name
    )
    participants = ClusterParticipants(broker, brokers)

    def logs_of(topic: str) -> Callable[[int], CoordinatorLog]:
        return lambda index: CoordinatorLog(
            broker.partitions.by_name(topic, index), broker.purgatory, broker.clock
        )

    broker.groups = GroupCoordinator(
        broker.resolver,
        lambda: broker.image,
        open_log=logs_of(GROUPS_TOPIC),
        clockwork=broker.timer,
        clock=broker.clock,
    )
    broker.transactions = TransactionCoordinator(
        broker.resolver,
        lambda: broker.image,
        participants=participants,
        producer_id_blocks=ControllerBlocks(broker),
        group_partition=broker.groups.runtime.partition_of,
        open_log=logs_of(TRANSACTIONS_TOPIC),
        clockwork=broker.timer,
        clock=broker.clock,
    )
    broker.verifications = Verifications(broker, brokers)
    broker.metrics.register(CoordinatorGauges(broker.groups, broker.transactions))
    return Elections(
        broker.node_id,
        [broker.groups.runtime, broker.transactions.runtime],
        [participants.couriers, broker.verifications.couriers],
    )


class Elections:
    """Tells each coordinator which partitions of its topic this broker leads, and the couriers
    between coordinators which brokers are gone."""

    def __init__(
        self, node_id: int, runtimes: Iterable[Runtime[Any]], couriers: Sequence[Couriers[Any]]
    ) -> None:
        self._node_id = node_id
        self._runtimes = {runtime.topic: runtime for runtime in runtimes}
        self._couriers = couriers

    def begin(self, image: Image) -> None:
        """Take up what this broker led when it stopped."""
        for name, runtime in self._runtimes.items():
            runtime.follow(Delta(), image)
            topic = image.topics.by_name(name)
            for index, state in topic.partitions.items() if topic is not None else ():
                self._decide(runtime, index, state)

    def follow(self, delta: Delta, image: Image) -> None:
        """The metadata changed, and the partitions have been told."""
        for couriers in self._couriers:
            couriers.follow(delta, image)
        for deleted in delta.topics_deleted.values():
            runtime = self._runtimes.get(deleted.name)
            if runtime is not None:
                for index in deleted.partitions:
                    runtime.resign(index)
        for name, runtime in self._runtimes.items():
            runtime.follow(delta, image)
            topic = image.topics.by_name(name)
            if topic is not None:
                for (topic_id, index), state in delta.partitions_changed.items():
                    if topic_id == topic.topic_id:
                        self._decide(runtime, index, state)

    def end(self) -> None:
        """The broker stops: nobody waits for a coordinator any longer."""
        for runtime in self._runtimes.values():
            runtime.close()
        for couriers in self._couriers:
            couriers.close()

    def _decide(self, runtime: Runtime[Any], index: int, state: PartitionState) -> None:
        if state.leader == self._node_id:
            runtime.elect(index, state.leader_epoch)
        else:
            runtime.resign(index)


class CoordinatorLog:
    """A partition of an internal topic in a coordinator's hands."""

    __slots__ = ("_clock", "_partition", "_purgatory")

    def __init__(
        self, partition: Partition, purgatory: Purgatory, clock: Callable[[], int]
    ) -> None:
        self._partition = partition
        self._purgatory = purgatory
        self._clock = clock

    @property
    def start_offset(self) -> int:
        return self._partition.log.start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.end_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        log = self._partition.log
        if offset >= log.end_offset:
            return b""
        records = log.read(offset, max_bytes, upto=log.end_offset)
        return records.read() if records is not None else b""

    def append(self, batch: bytearray) -> int:
        appended = self._partition.append(
            memoryview(batch), acks=ALL_IN_SYNC, now_ms=self._clock(), from_client=False
        )
        return appended.last_offset + 1

    def append_marker(self, marker: Marker) -> int:
        return self._partition.end_transaction(marker, now_ms=self._clock()).last_offset + 1

    def when_committed(self, next_offset: int, timeout_ms: int, committed: Committed) -> None:
        if self._partition.has_promised(next_offset, ALL_IN_SYNC):  # always, where it is alone
            committed(None)
            return
        when_promised(
            self._partition,
            next_offset,
            lambda code: committed(self._error(code) if code else None),
            purgatory=self._purgatory,
            timeout_ms=timeout_ms,
            operation="Coordinator",
        )

    def _error(self, code: ErrorCode) -> KafkaError:
        partition = self._partition
        return KafkaError(code, f"{partition.topic}-{partition.index} has not committed a write.")
