"""The partitions that take part in transactions: those led here, and those of other brokers."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.answer import Answer
from barnabas.coordinator.marker import Marker
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.ports import Outcomes
from barnabas.coordinator.transactions.records import by_topic
from barnabas.server.transactions.broker_requests import Brokers, Couriers, Errand
from barnabas.server.transactions.local_markers import LocalParticipants
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker


class ClusterParticipants:
    """Writes markers wherever the partitions are led."""

    __slots__ = ("_brokers", "_here", "couriers")

    def __init__(self, broker: "Broker", brokers: Brokers) -> None:
        self._brokers = brokers
        self._here = LocalParticipants(broker)
        self.couriers: Couriers[WritableTxnMarker] = Couriers(
            brokers,
            "transaction-markers",
            compose=lambda markers: WriteTxnMarkersRequest(markers=markers),
            read=_by_producer,
            timeout_ms=lambda: broker.resolver.broker("request.timeout.ms"),
        )

    def by_leader(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[int, Sequence[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for place in partitions:
            leader = self._brokers.leader_of(*place)
            if leader is not None:
                found.setdefault(leader, []).append(place)
        return found

    def end(
        self,
        leader: int,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        is_wanted: Callable[[], bool],
    ) -> Answer[Outcomes]:
        if leader == self._brokers.node_id:
            return self._here.end(marker, partitions)
        body = _writable(marker, partitions)
        return self.couriers.send(leader, Errand(marker.producer_id, body, partitions, is_wanted))


def _writable(marker: Marker, partitions: Sequence[TopicPartition]) -> WritableTxnMarker:
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


def _by_producer(response: WriteTxnMarkersResponse) -> Mapping[Hashable, Outcomes]:
    return {
        each.producer_id: {
            (topic.name, partition.partition_index): ErrorCode.of(partition.error_code)
            for topic in each.topics
            for partition in topic.partitions
        }
        for each in response.markers
    }
