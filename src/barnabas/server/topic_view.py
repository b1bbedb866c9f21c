"""How a topic looks to the clients of a listener: leaders they reach, replicas they do not."""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.coordinator.topics import INTERNAL_TOPICS
from barnabas.metadata.image import Image
from barnabas.metadata.states import (
    NO_LEADER,
    BrokerState,
    Endpoint,
    PartitionState,
    TopicState,
    endpoint_of,
)
from barnabas.wire.errors import ErrorCode


class PartitionView(NamedTuple):
    error: ErrorCode
    leader: int
    offline: list[int]


class ListenerView:
    """The cluster as one listener's clients see it, with each broker looked up once per answer."""

    __slots__ = ("_endpoints", "_image", "listener")

    def __init__(self, image: Image, listener: str) -> None:
        self._image = image
        self.listener = listener
        self._endpoints = {
            broker.broker_id: endpoint
            for broker in image.brokers.values()
            if not broker.fenced and (endpoint := endpoint_of(broker, listener))
        }

    def reachable(self, asked: int) -> Iterable[tuple[BrokerState, Endpoint]]:
        """The brokers that may lead; where there are none, the one that is `asked`.

        A client that is told of no broker at all forgets all it knew, and may never ask again.
        """
        for broker_id, endpoint in sorted(self._endpoints.items()):
            yield self._image.brokers[broker_id], endpoint
        broker = self._image.brokers.get(asked)
        if not self._endpoints and broker and (own := endpoint_of(broker, self.listener)):
            yield broker, own

    def partition(self, partition: PartitionState) -> PartitionView:
        endpoints, brokers = self._endpoints, self._image.brokers
        offline = [
            replica
            for replica in partition.replicas
            if replica not in endpoints
            or not brokers[replica].has_online(partition.directory_of(replica))
        ]
        if partition.leader in endpoints:
            return PartitionView(ErrorCode.NONE, partition.leader, offline)
        known = partition.leader in brokers
        error = ErrorCode.LISTENER_NOT_FOUND if known else ErrorCode.LEADER_NOT_AVAILABLE
        return PartitionView(error, NO_LEADER, offline)


def is_internal(topic: TopicState) -> bool:
    return topic.name in INTERNAL_TOPICS
