"""Queues of requests to other brokers: one request is in flight to each of them at a time.

Items that are added while a request is in flight are sent together in the next one. So frequent
items need few requests, and a rare item is sent at once.
"""

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Generic, TypeVar

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import NO_LEADER, endpoint_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.peer import Peer, Peers
from barnabas.wire.schema import Message

MAX_ITEMS_PER_REQUEST: Final = 500

B = TypeVar("B")


@dataclass(slots=True, eq=False)
class RequestItem(Generic[B]):
    """One item of a request, and its pending response."""

    key: Hashable
    """Identifies the item in the response: it is unique in a request."""
    body: B
    partitions: Sequence[TopicPartition]
    is_needed: Callable[[], bool] = lambda: True
    response: PendingResponse[PartitionErrorCodes] = field(default_factory=PendingResponse)

    def fail(self, code: ErrorCode) -> None:
        self.response.complete(dict.fromkeys(self.partitions, code))


class BrokerRequestQueues(Generic[B]):
    """The queues of all brokers to which requests were sent."""

    __slots__ = ("_brokers", "_compose", "_purpose", "_queues", "_read", "_timeout_ms")

    def __init__(
        self,
        brokers: "BrokerDirectory",
        purpose: str,
        *,
        compose: Callable[[list[B]], Message],
        read: Callable[[Any], Mapping[Hashable, PartitionErrorCodes]],
        timeout_ms: Callable[[], int],
    ) -> None:
        """`read` returns the results in a response, by key. It raises KafkaError if all failed."""
        self._brokers = brokers
        self._purpose = purpose
        self._compose = compose
        self._read = read
        self._timeout_ms = timeout_ms
        self._queues: dict[int, BrokerRequestQueue[B]] = {}

    def send(self, broker_id: int, item: RequestItem[B]) -> PendingResponse[PartitionErrorCodes]:
        """Returns error codes by partition; NETWORK_EXCEPTION if the broker does not respond."""
        queue = self._queues.get(broker_id)
        if queue is None:
            queue = self._queues[broker_id] = BrokerRequestQueue(self, broker_id)
        queue.add(item)
        return item.response

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Fails the items of brokers that were fenced or removed."""
        for broker_id in sorted(delta.brokers_changed & self._queues.keys()):
            broker = image.brokers.get(broker_id)
            if broker is None or broker.fenced:
                self._queues[broker_id].fail_all()

    def close(self) -> None:
        """Fails all items."""
        for queue in self._queues.values():
            queue.fail_all()

    def send_request(
        self, broker_id: int, items: Sequence[RequestItem[B]], on_response: Callable[[Any], None]
    ) -> bool:
        """Sends one request for all items; returns whether the broker has an endpoint."""
        peer = self._brokers.peer(broker_id, self._purpose)
        if peer is None:
            return False
        request = self._compose([item.body for item in items])
        peer.send(request, self._timeout_ms(), on_response)
        return True

    def on_response(self, items: Sequence[RequestItem[B]], response: Any) -> None:
        """Completes the items with a response, or with the OSError of the connection."""
        if isinstance(response, OSError):
            _fail(items, ErrorCode.NETWORK_EXCEPTION)
            return
        try:
            outcomes = self._read(response)
        except KafkaError as error:
            _fail(items, error.code)
            return
        for item in items:
            codes = outcomes.get(item.key, {})
            item.response.complete(
                {
                    partition: codes.get(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
                    for partition in item.partitions
                }
            )


class BrokerRequestQueue(Generic[B]):
    """The items for one broker, of which one request is in flight."""

    __slots__ = ("_broker_id", "_in_flight", "_queues", "_waiting")

    def __init__(self, queues: BrokerRequestQueues[B], broker_id: int) -> None:
        self._queues = queues
        self._broker_id = broker_id
        self._waiting: deque[RequestItem[B]] = deque()
        self._in_flight: list[RequestItem[B]] = []

    def add(self, item: RequestItem[B]) -> None:
        self._waiting.append(item)
        self._send_next()

    def fail_all(self) -> None:
        """Fails all items; a later response to the request in flight is ignored."""
        failed = [*self._in_flight, *self._waiting]
        self._in_flight = []
        self._waiting.clear()
        _fail(failed, ErrorCode.NETWORK_EXCEPTION)

    def _send_next(self) -> None:
        while self._waiting and not self._in_flight:
            items = self._in_flight = self._take_items()
            if items and not self._queues.send_request(
                self._broker_id, items, partial(self._on_response, items)
            ):
                self._in_flight = []
                _fail(items, ErrorCode.NETWORK_EXCEPTION)

    def _take_items(self) -> list[RequestItem[B]]:
        """Removes and returns the oldest items, with unique keys; drops those no longer needed."""
        by_key: dict[Hashable, RequestItem[B]] = {}
        kept: list[RequestItem[B]] = []
        while self._waiting and len(by_key) < MAX_ITEMS_PER_REQUEST:
            item = self._waiting.popleft()
            if item.is_needed() and by_key.setdefault(item.key, item) is not item:
                kept.append(item)
        self._waiting.extendleft(reversed(kept))
        return list(by_key.values())

    def _on_response(self, items: list[RequestItem[B]], response: Any) -> None:
        if self._in_flight is not items:
            return  # they have failed already
        self._in_flight = []
        self._queues.on_response(items, response)
        self._send_next()


def _fail(items: Sequence[RequestItem[Any]], code: ErrorCode) -> None:
    for item in items:
        item.fail(code)


class BrokerDirectory:
    """Finds the leaders of partitions, and connections to brokers."""

    __slots__ = ("_image", "_listener", "_peers", "node_id")

    def __init__(
        self, node_id: int, image: Callable[[], MetadataImage], peers: Peers, listener: str
    ) -> None:
        self.node_id = node_id
        self._image = image
        self._peers = peers
        self._listener = listener

    def leader_of(self, topic: str, index: int) -> int | None:
        """Returns the leader of a partition, or None if it has none or does not exist."""
        state = self._image().topics.by_name(topic)
        partition = state.partitions.get(index) if state is not None else None
        if partition is None or partition.leader == NO_LEADER:
            return None
        return partition.leader

    def peer(self, broker_id: int, purpose: str) -> Peer | None:
        """Returns the connection to a broker for one purpose, or None if it has no endpoint."""
        broker = self._image().brokers.get(broker_id)
        if broker is None or broker.fenced:
            return None
        endpoint = endpoint_of(broker, self._listener)
        if endpoint is None:
            return None
        return self._peers.at(endpoint.host, endpoint.port, purpose)
