"""Connects the coordinators with the partitions of their internal topics."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas.coordinator.groups.coordinator import GroupCoordinator
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.ports import OnCommitted, TransactionMarker
from barnabas.coordinator.records import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.coordinator.transactions.coordinator import TransactionCoordinator
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import PartitionRegistration
from barnabas.node.gauges import CoordinatorGauges
from barnabas.replication import Partition
from barnabas.replication.partition import ACKS_ALL
from barnabas.server.disk_reads import DiskReads
from barnabas.server.nodes import BrokerNode
from barnabas.server.purgatory import Purgatory, when_committed
from barnabas.server.transactions.broker_requests import BrokerDirectory, BrokerRequestQueues
from barnabas.server.transactions.markers import ClusterMarkerWriter
from barnabas.server.transactions.partition_verifier import PartitionVerifier
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.wire.peer import Peers

ALLOCATION_TIMEOUT_MS = 5_000
"""Producers that wait then get a retriable error, before their own request times out."""


def add_coordinators(
    broker: BrokerNode, peers: Peers, random_bytes: Callable[[int], bytes]
) -> "CoordinatorElections":
    """Adds the group and transaction coordinators to a broker."""
    brokers = BrokerDirectory(
        broker.node_id, lambda: broker.image, peers, broker.settings.inter_broker_listener_name
    )
    participants = ClusterMarkerWriter(broker, brokers)

    def logs_of(topic: str) -> Callable[[int], CoordinatorLog]:
        return lambda index: CoordinatorLog(
            broker.partitions.get_by_name(topic, index),
            broker.purgatory,
            broker.disk_reads,
            broker.clock,
        )

    broker.groups = GroupCoordinator(
        broker.resolver,
        lambda: broker.image,
        open_log=logs_of(GROUPS_TOPIC),
        timer_service=broker.timer,
        clock=broker.clock,
        random_bytes=random_bytes,
    )
    broker.transactions = TransactionCoordinator(
        broker.resolver,
        lambda: broker.image,
        participants=participants,
        producer_id_blocks=ProducerIdBlockAllocator(broker),
        group_partition=broker.groups.runtime.partition_of,
        open_log=logs_of(TRANSACTIONS_TOPIC),
        timer_service=broker.timer,
        clock=broker.clock,
    )
    broker.partition_verifier = PartitionVerifier(broker, brokers)
    broker.metrics.register(CoordinatorGauges(broker.groups, broker.transactions))
    return CoordinatorElections(
        broker.node_id,
        [broker.groups.runtime, broker.transactions.runtime],
        [participants.request_queues, broker.partition_verifier.request_queues],
    )


class CoordinatorElections:
    """Starts and stops the coordinators of the partitions that this broker leads.

    It also passes metadata changes to the request queues between coordinators.
    """

    def __init__(
        self,
        node_id: int,
        runtimes: Iterable[CoordinatorRuntime[Any]],
        request_queues: Sequence[BrokerRequestQueues[Any]],
    ) -> None:
        self._node_id = node_id
        self._runtimes = {runtime.topic: runtime for runtime in runtimes}
        self._request_queues = request_queues

    def start(self, image: MetadataImage) -> None:
        """Loads the coordinator partitions that this broker leads."""
        for name, runtime in self._runtimes.items():
            runtime.on_metadata_update(MetadataDelta(), image)
            topic = image.topics.by_name(name)
            for index, state in topic.partitions.items() if topic is not None else ():
                self._decide(runtime, index, state)

    def on_metadata_change(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Called after the partitions have applied the change."""
        for queues in self._request_queues:
            queues.on_metadata_update(delta, image)
        for deleted in delta.topics_deleted.values():
            runtime = self._runtimes.get(deleted.name)
            if runtime is not None:
                for index in deleted.partitions:
                    runtime.on_resignation(index)
        for name, runtime in self._runtimes.items():
            runtime.on_metadata_update(delta, image)
            topic = image.topics.by_name(name)
            if topic is not None:
                for (topic_id, index), state in delta.partitions_changed.items():
                    if topic_id == topic.topic_id:
                        self._decide(runtime, index, state)

    def stop(self) -> None:
        """Stops the coordinators; requests that wait for them end."""
        for runtime in self._runtimes.values():
            runtime.close()
        for queues in self._request_queues:
            queues.close()

    def _decide(
        self, runtime: CoordinatorRuntime[Any], index: int, state: PartitionRegistration
    ) -> None:
        if state.leader == self._node_id:
            runtime.on_election(index, state.leader_epoch)
        else:
            runtime.on_resignation(index)


class CoordinatorLog:
    """A partition of an internal topic, as a coordinator uses it."""

    __slots__ = ("_clock", "_disk_reads", "_partition", "_purgatory")

    def __init__(
        self,
        partition: Partition,
        purgatory: Purgatory,
        disk_reads: DiskReads,
        clock: Callable[[], int],
    ) -> None:
        self._partition = partition
        self._purgatory = purgatory
        self._disk_reads = disk_reads
        self._clock = clock

    @property
    def start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def end_offset(self) -> int:
        return self._partition.log.log_end_offset

    def read(self, offset: int, max_bytes: int) -> bytes:
        log = self._partition.log
        if offset >= log.log_end_offset:
            return b""
        records = log.read(offset, max_bytes, upto=log.log_end_offset)
        if records is None:
            return b""
        next_read = records.next_cold_read()
        if next_read is not None:
            self._disk_reads.start_load(next_read)
        return records.read()

    def append(self, batch: bytearray) -> int:
        appended = self._partition.append(
            memoryview(batch), acks=ACKS_ALL, now_ms=self._clock(), from_client=False
        )
        return appended.last_offset + 1

    def append_marker(self, marker: TransactionMarker) -> int:
        return self._partition.end_transaction(marker, now_ms=self._clock()).last_offset + 1

    @property
    def commits_at_once(self) -> bool:
        partition = self._partition
        return (
            partition.leader_state is None
            and partition.is_leader
            and not partition.is_under_min_isr
            and not partition.config.flushes_by_count
            and partition.is_committed(partition.log.log_end_offset, ACKS_ALL)
        )

    def is_committed(self, next_offset: int) -> bool:
        return self._partition.is_committed(next_offset, ACKS_ALL)

    def when_committed(self, next_offset: int, timeout_ms: int, committed: OnCommitted) -> None:
        if self._partition.is_committed(next_offset, ACKS_ALL):  # always, where it is alone
            committed(None)
            return
        when_committed(
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


class ProducerIdBlockAllocator:
    """Requests blocks from the controller."""

    __slots__ = ("_broker", "_request")

    def __init__(self, broker: BrokerNode) -> None:
        self._broker = broker
        self._request: asyncio.Task[range] | None = None

    def allocate(self) -> PendingResponse[range]:
        pending: PendingResponse[range] = PendingResponse()
        self._request = asyncio.ensure_future(self._allocate())
        self._request.add_done_callback(lambda done: pending.complete_with(done.result))
        return pending

    async def _allocate(self) -> range:
        broker = self._broker
        registered = broker.image.brokers.get(broker.node_id)
        block: AllocateProducerIdsResponse = await broker.controller.handle(
            AllocateProducerIdsRequest(
                broker_id=broker.node_id, broker_epoch=registered.epoch if registered else -1
            ),
            timeout_ms=ALLOCATION_TIMEOUT_MS,
        )
        if block.error_code != ErrorCode.NONE:
            raise KafkaError(ErrorCode.of(block.error_code), "The controller allocated no ids.")
        start = block.producer_id_start
        return range(start, start + block.producer_id_len)
