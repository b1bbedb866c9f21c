"""The cluster as the clients of one listener see it: reachable brokers, leaders, operations."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from barnabas.config.addresses import SecurityProtocol
from barnabas.coordinator.records import INTERNAL_TOPICS
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import (
    NO_LEADER,
    BrokerRegistration,
    ControllerRegistration,
    ListenerEndpoint,
    PartitionRegistration,
    endpoint_of,
)
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode

E = TypeVar("E")

_LOCALHOST = "localhost"
_ADDRESSES_OF_LOCALHOST = ("127.0.0.1", "::1")
_TLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


def cluster_operations(context: RequestContext) -> int:
    """Returns the operations that the client may perform on the cluster, as a bit field.

    As in Kafka, there are none for a client that may not describe the cluster.
    """
    if not context.is_allowed(AclOperation.DESCRIBE, CLUSTER):
        return 0
    return context.allowed_operations(CLUSTER)


def client_endpoint(
    node: BrokerRegistration | ControllerRegistration, context: RequestContext
) -> ListenerEndpoint | None:
    """Returns where this client reaches a node; None if it has no endpoint of the listener.

    `localhost` in a registration means this machine. Unless advertised.listeners is set, the client
    gets the address by which it reached this machine itself: that one works for it. With TLS, a
    client on this machine gets the name, because that is what certificates have.
    """
    endpoint = endpoint_of(node, context.listener)
    if endpoint is None or endpoint.host != _LOCALHOST:
        return endpoint
    if context.broker.settings["advertised.listeners"] is not None:
        return endpoint
    host = context.connection.local_host
    if endpoint.security_protocol in _TLS and host in _ADDRESSES_OF_LOCALHOST:
        return endpoint
    return replace(endpoint, host=host)


class PartitionView(NamedTuple):
    error: ErrorCode
    leader: int
    offline: list[int]


class ListenerView:
    """The cluster as one client sees it; every broker is looked up once."""

    __slots__ = ("_context", "_endpoints", "_image")

    def __init__(self, context: RequestContext) -> None:
        self._image: MetadataImage = context.broker.image
        self._context = context
        self._endpoints = {
            broker.broker_id: endpoint
            for broker in self._image.brokers.values()
            if not broker.fenced and (endpoint := client_endpoint(broker, context))
        }

    def reachable(self, this_broker: int) -> Iterable[tuple[BrokerRegistration, ListenerEndpoint]]:
        """Returns the unfenced brokers, or this broker if there are none.

        A client that receives an empty list of brokers forgets the cluster and may never return.
        """
        for broker_id, endpoint in sorted(self._endpoints.items()):
            yield self._image.brokers[broker_id], endpoint
        broker = self._image.brokers.get(this_broker)
        if not self._endpoints and broker and (own := client_endpoint(broker, self._context)):
            yield broker, own

    def partition(self, partition: PartitionRegistration) -> PartitionView:
        endpoints, brokers = self._endpoints, self._image.brokers
        offline = [
            replica
            for replica in partition.replicas
            if replica not in endpoints
            or not brokers[replica].has_online(partition.directory_of(replica))
        ]
        if partition.leader in endpoints:
            return PartitionView(ErrorCode.NONE, partition.leader, offline)
        is_registered = partition.leader in brokers
        error = ErrorCode.LISTENER_NOT_FOUND if is_registered else ErrorCode.LEADER_NOT_AVAILABLE
        return PartitionView(error, NO_LEADER, offline)


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS


class PartitionLeader(NamedTuple):
    """The leader of a partition, and its endpoint if it has one of the client's listener."""

    leader_id: int
    leader_epoch: int
    endpoint: ListenerEndpoint | None
    rack: str | None


def leader_of(topic: str | bytes, index: int, context: RequestContext) -> PartitionLeader | None:
    """Returns the leader of a partition, or None if it does not exist; `topic` is a name or id."""
    image = context.broker.image
    topics = image.topics
    state = topics.by_name(topic) if isinstance(topic, str) else topics.by_id(topic)
    partition = state.partitions.get(index) if state is not None else None
    if partition is None:
        return None
    broker = image.brokers.get(partition.leader) if partition.leader != NO_LEADER else None
    if broker is None or broker.fenced:
        return PartitionLeader(partition.leader, partition.leader_epoch, None, None)
    endpoint = client_endpoint(broker, context)
    return PartitionLeader(partition.leader, partition.leader_epoch, endpoint, broker.rack)


def add_current_leaders(
    partitions: Iterable[tuple[str | bytes, int, Any]],
    context: RequestContext,
    leader_and_epoch: Callable[..., Any],
    node_endpoint: Callable[..., E],
) -> list[E]:
    """Sets the current leader in partition responses, and returns the leaders' endpoints (KIP-951).

    `partitions` has the topic, the index and the response of each; `leader_and_epoch` and
    `node_endpoint` are the classes that the API's response uses.
    """
    endpoints: dict[int, E] = {}
    for topic, index, response in partitions:
        leader = leader_of(topic, index, context)
        if leader is None:
            continue
        response.current_leader = leader_and_epoch(
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
