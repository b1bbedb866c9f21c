"""How a topic looks to the clients of a listener: leaders they reach, replicas they do not."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

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
from barnabas.server.request_context import Call
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


E = TypeVar("E")


class Leader(NamedTuple):
    """The leader as the metadata has it, and its address if the client's listener reaches it."""

    leader_id: int
    leader_epoch: int
    endpoint: Endpoint | None
    rack: str | None


def leader_of(topic: str | bytes, index: int, call: Call) -> Leader | None:
    """The leader of a partition of a topic, named or by id; None if the metadata has neither."""
    image = call.broker.image
    topics = image.topics
    state = topics.by_name(topic) if isinstance(topic, str) else topics.by_id(topic)
    partition = state.partitions.get(index) if state is not None else None
    if partition is None:
        return None
    broker = image.brokers.get(partition.leader) if partition.leader != NO_LEADER else None
    if broker is None or broker.fenced:
        return Leader(partition.leader, partition.leader_epoch, None, None)
    endpoint = endpoint_of(broker, call.listener)
    return Leader(partition.leader, partition.leader_epoch, endpoint, broker.rack)


def name_leaders(
    refused: Iterable[tuple[str | bytes, int, Any]],
    call: Call,
    leader_and_epoch: Callable[..., Any],
    node_endpoint: Callable[..., E],
) -> list[E]:
    """Say in the answers of these partitions who leads them, and return where those listen.

    Each comes with its topic and index; the last two are the classes of the API's response.
    """
    endpoints: dict[int, E] = {}
    for topic, index, answer in refused:
        leader = leader_of(topic, index, call)
        if leader is None:
            continue
        answer.current_leader = leader_and_epoch(
            leader_id=leader.leader_id, leader_epoch=leader.leader_epoch
        )
        if leader.endpoint is not None:
            endpoints[leader.leader_id] = node_endpoint(
                node_id=leader.leader_id,
                host=leader.endpoint.host,
                port=leader.endpoint.port,
                rack=leader.rack,
            )
    return list(endpoints.values())


TOPIC_OPERATIONS = sum(1 << code for code in (3, 4, 5, 6, 7, 8, 10, 11))
GROUP_OPERATIONS = sum(1 << code for code in (3, 6, 8, 10, 11))
CLUSTER_OPERATIONS = sum(1 << code for code in (5, 7, 8, 9, 10, 11, 12))
