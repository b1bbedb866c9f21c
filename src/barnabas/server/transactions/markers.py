"""Writes transaction markers to partitions, whichever broker leads them."""

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.pending_response import PendingResponse, all_of
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.records import by_topic
from barnabas.log.errors import LogDirFailure
from barnabas.server.purgatory import when_committed
from barnabas.server.transactions.broker_requests import (
    BrokerDirectory,
    BrokerRequestQueues,
    RequestItem,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode

_NOT_READY = frozenset(
    (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Errors of the group coordinator, which a transaction coordinator does not expect here."""

log = logging.getLogger(__name__)


class LocalMarkerWriter:
    """Writes markers to partitions that this broker leads; responds when they are committed."""

    __slots__ = ("_broker",)

    def __init__(self, broker: "BrokerNode") -> None:
        self._broker = broker

    def write_markers(
        self, marker: TransactionMarker, partitions: Sequence[TopicPartition]
    ) -> PendingResponse[PartitionErrorCodes]:
        """Writes a marker to the partitions; returns the error codes by partition."""
        codes: PartitionErrorCodes = {}
        pending: dict[TopicPartition, PendingResponse[ErrorCode]] = {}
        for topic_partition in partitions:
            outcome = self._write_marker(marker, *topic_partition)
            if isinstance(outcome, PendingResponse):
                pending[topic_partition] = outcome
            else:
                codes[topic_partition] = outcome
        if not pending:
            return PendingResponse.completed(codes)
        return all_of(list(pending.values())).map(
            lambda later: codes | dict(zip(pending, later, strict=True))
        )

    def _write_marker(
        self, marker: TransactionMarker, topic: str, index: int
    ) -> ErrorCode | PendingResponse[ErrorCode]:
        broker = self._broker
        try:
            partition = broker.partitions.get_by_name(topic, index)
            if topic == GROUPS_TOPIC:
                # The coordinator also commits or drops the offsets of the transaction.
                return _code_of(broker.groups.end_transaction(index, marker))
            appended = partition.end_transaction(marker, now_ms=broker.clock())
        except Exception as error:
            return _code(error)
        response: PendingResponse[ErrorCode] = PendingResponse()
        when_committed(
            partition,
            appended.last_offset + 1,
            response.complete,
            purgatory=broker.purgatory,
            timeout_ms=broker.resolver.broker("request.timeout.ms"),
            operation="Produce",
        )
        return response.result() if response.is_done else response


def _code_of(response: PendingResponse[None]) -> ErrorCode | PendingResponse[ErrorCode]:
    if response.is_done:
        return _code(response.error)
    code: PendingResponse[ErrorCode] = PendingResponse()
    response.when_done(lambda done: code.complete(_code(done.error)))
    return code


def _code(error: Exception | None) -> ErrorCode:
    match error:
        case None:
            return ErrorCode.NONE
        case KafkaError():
            return ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
        case LogDirFailure():
            return ErrorCode.KAFKA_STORAGE_ERROR
    log.error("Failed to write a transaction marker", exc_info=error)
    return ErrorCode.UNKNOWN_SERVER_ERROR


class ClusterMarkerWriter:
    """Writes markers to partitions of all brokers, on behalf of a transaction coordinator."""

    __slots__ = ("_brokers", "_local", "request_queues")

    def __init__(self, broker: "BrokerNode", brokers: BrokerDirectory) -> None:
        self._brokers = brokers
        self._local = LocalMarkerWriter(broker)
        self.request_queues: BrokerRequestQueues[WritableTxnMarker] = BrokerRequestQueues(
            brokers,
            "transaction-markers",
            compose=lambda markers: WriteTxnMarkersRequest(markers=markers),
            read=_by_producer,
            timeout_ms=lambda: broker.resolver.broker("request.timeout.ms"),
        )

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            leader = self._brokers.leader_of(*partition)
            if leader is not None:
                by_leader.setdefault(leader, []).append(partition)
        return by_leader

    def write_markers(
        self,
        leader: int,
        marker: TransactionMarker,
        partitions: Sequence[TopicPartition],
        is_needed: Callable[[], bool],
    ) -> PendingResponse[PartitionErrorCodes]:
        if leader == self._brokers.node_id:
            return self._local.write_markers(marker, partitions)
        body = _writable(marker, partitions)
        return self.request_queues.send(
            leader, RequestItem(marker.producer_id, body, partitions, is_needed)
        )


def _writable(marker: TransactionMarker, partitions: Sequence[TopicPartition]) -> WritableTxnMarker:
    return WritableTxnMarker(
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        transaction_result=marker.committed,
        topics=[
            WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic(partitions).items()
        ],
        coordinator_epoch=marker.coordinator_epoch,
        transaction_version=marker.transaction_version,
    )


def _by_producer(response: WriteTxnMarkersResponse) -> Mapping[Hashable, PartitionErrorCodes]:
    return {
        marker.producer_id: {
            (topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
            for topic in marker.topics
            for partition in topic.partitions
        }
        for marker in response.markers
    }
