"""Every partition that this broker follows, and its fetchers by leader."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from zlib import crc32

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.metadata.states import NO_LEADER, ListenerEndpoint, PartitionRegistration, endpoint_of
from barnabas.replication.partitions import Partitions
from barnabas.replication.replica_fetcher.followed_partition import (
    FollowedPartition,
    PartitionFetchState,
)
from barnabas.replication.replica_fetcher.leader_connection import LeaderConnection
from barnabas.replication.replica_fetcher.replica_fetcher import FetchLimits, ReplicaFetcher
from barnabas.replication.throttle import ReplicationThrottle, ThrottleSide
from barnabas.replication.topic_config import ConfigProvider
from barnabas.wire.errors import KafkaError
from barnabas.wire.peer import Peers

STARTED_PER_TURN = 16
"""How many logs are opened before the loop handles other events."""

_logger = logging.getLogger(__name__)


class ReplicaFetcherManager:
    """Fetches from leaders as the metadata says (Kafka's ReplicaFetcherManager).

    `listener` is the inter-broker listener, `clock` the wall clock, and `broker_epoch` the epoch
    with which this broker is registered.
    """

    def __init__(
        self,
        partitions: Partitions,
        peers: Peers,
        settings: ConfigProvider,
        *,
        listener: str,
        broker_epoch: Callable[[], int],
        clock: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.throttle = ReplicationThrottle(ThrottleSide.FOLLOWER, partitions.node_id, settings)
        self._partitions = partitions
        self._peers = peers
        self._settings = settings
        self._listener = listener
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._loop = loop
        self._image = partitions.image
        self._connections: dict[tuple[int, int], LeaderConnection] = {}  # by leader, and a number
        self._by_key: dict[PartitionKey, LeaderConnection] = {}
        self._to_start: dict[PartitionKey, PartitionRegistration] = {}
        self._unopened: dict[PartitionKey, None] = {}
        self._start_handle: asyncio.Handle | None = None
        self._per_leader: int = settings.broker("num.replica.fetchers")
        self._closed_bytes = 0  # what closed fetchers have received

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies a metadata change. Settings and partitions must have it already."""
        self._image = image
        if delta.configs_changed:
            self._apply_configs(delta)
        for topic in delta.topics_deleted.values():
            for index in topic.partitions:
                self._stop_fetching((topic.topic_id, index))
        for key, state in delta.partitions_changed.items():
            self._change(key, state)
        if delta.brokers_changed:
            self._update_endpoints()
        self._start_some()

    def stop(self) -> None:
        """Stops all fetchers."""
        if self._start_handle is not None:
            self._start_handle.cancel()
        for connection in self._connections.values():
            connection.close()
        self._connections = {}
        self._by_key = {}
        self._to_start = {}

    # Metrics

    def by_leader(self) -> Iterator[tuple[int, int, ReplicaFetcher]]:
        """Yields each fetcher with its leader, and its number among the fetchers of that leader."""
        for (leader_id, number), connection in self._connections.items():
            yield leader_id, number, connection.fetcher

    def __iter__(self) -> Iterator[FollowedPartition]:
        for connection in self._connections.values():
            yield from connection.fetcher

    @property
    def max_lag(self) -> int:
        """The largest lag of a followed partition."""
        return max((followed.lag for followed in self), default=0)

    @property
    def failed_count(self) -> int:
        """How many partitions are not fetched before they have another leader epoch."""
        failed = sum(followed.fetch_state is PartitionFetchState.FAILED for followed in self)
        return failed + len(self._unopened)

    @property
    def received_bytes(self) -> int:
        """The bytes of records that were received since the start."""
        fetchers = (connection.fetcher for connection in self._connections.values())
        return self._closed_bytes + sum(fetcher.received_bytes for fetcher in fetchers)

    # Applying the metadata

    def _change(self, key: PartitionKey, state: PartitionRegistration) -> None:
        node_id = self._partitions.node_id
        if node_id not in state.replicas or state.leader in (node_id, NO_LEADER):
            self._stop_fetching(key)
            return
        connection = self._by_key.get(key)
        followed = connection.fetcher.find(key) if connection is not None else None
        if connection is not None and followed is not None:
            is_same = (connection.leader_id, followed.leader_epoch) == (
                state.leader,
                state.leader_epoch,
            )
            if is_same and followed.partition.error_code is None:
                return
        self._stop_fetching(key)
        self._to_start[key] = state

    def _stop_fetching(self, key: PartitionKey) -> None:
        self._to_start.pop(key, None)
        self._unopened.pop(key, None)
        connection = self._by_key.pop(key, None)
        if connection is not None:
            connection.fetcher.remove(key)

    def _start_some(self) -> None:
        """Starts to fetch a few partitions; the first use of a partition opens its log."""
        if self._start_handle is not None:
            self._start_handle.cancel()
            self._start_handle = None
        changed: dict[LeaderConnection, None] = {}
        for _ in range(STARTED_PER_TURN):
            if not self._to_start:
                break
            key = next(iter(self._to_start))
            connection = self._start_fetching(key, self._to_start.pop(key))
            if connection is not None:
                changed[connection] = None
        for connection in changed:
            connection.request_soon()
        if self._to_start:
            self._start_handle = self._loop.call_soon(self._start_some)
        else:
            self._close_idle()

    def _start_fetching(
        self, key: PartitionKey, state: PartitionRegistration
    ) -> LeaderConnection | None:
        try:
            partition = self._partitions.get(*key)
        except (KafkaError, OSError) as failure:
            _logger.error("A partition cannot be followed: %s", failure)
            self._unopened[key] = None
            return None
        if partition.error_code is not None:
            self._unopened[key] = None
            return None
        connection = self._connection_to(state.leader, self._fetcher_number(key))
        self._by_key[key] = connection
        connection.fetcher.add(partition, state.leader_epoch)
        return connection

    def _fetcher_number(self, key: PartitionKey) -> int:
        topic_id, index = key
        return (crc32(topic_id) + index) % self._per_leader

    # Connections

    def _connection_to(self, leader_id: int, number: int) -> LeaderConnection:
        connection = self._connections.get((leader_id, number))
        if connection is None:
            connection = self._connections[leader_id, number] = LeaderConnection(
                leader_id,
                self._new_fetcher(),
                self._peers,
                self._loop,
                purpose=f"replica-{number}",
                response_timeout_ms=self._settings.broker("replica.socket.timeout.ms"),
            )
            connection.set_endpoint(self._endpoint_of(leader_id))
        return connection

    def _new_fetcher(self) -> ReplicaFetcher:
        setting = self._settings.broker
        limits = FetchLimits(
            wait_max_ms=setting("replica.fetch.wait.max.ms"),
            min_bytes=setting("replica.fetch.min.bytes"),
            response_max_bytes=setting("replica.fetch.response.max.bytes"),
            partition_max_bytes=setting("replica.fetch.max.bytes"),
            backoff_ms=setting("replica.fetch.backoff.ms"),
        )
        return ReplicaFetcher(
            self._partitions.node_id,
            limits,
            broker_epoch=self._broker_epoch,
            clock=self._clock,
            throttle=self.throttle,
            on_truncated=self._partitions.replica_moves.on_truncated,
        )

    def _endpoint_of(self, leader_id: int) -> ListenerEndpoint | None:
        broker = self._image.brokers.get(leader_id)
        if broker is None or broker.fenced:
            return None
        return endpoint_of(broker, self._listener)

    def _update_endpoints(self) -> None:
        for connection in self._connections.values():
            connection.set_endpoint(self._endpoint_of(connection.leader_id))

    def _close_idle(self) -> None:
        idle = [key for key, connection in self._connections.items() if not len(connection.fetcher)]
        for key in idle:
            connection = self._connections.pop(key)
            self._closed_bytes += connection.fetcher.received_bytes
            connection.close()

    # Settings

    def _apply_configs(self, delta: MetadataDelta) -> None:
        was_throttled = bool(self.throttle)
        self.throttle.apply_configs(delta.configs_changed)
        if was_throttled or self.throttle:
            for connection in self._connections.values():
                connection.fetcher.on_throttle_changed()
                connection.send_next()
        per_leader = self._settings.broker("num.replica.fetchers")
        if per_leader != self._per_leader:
            self._per_leader = per_leader
            self._reassign_all()

    def _reassign_all(self) -> None:
        for key in list(self._by_key):
            state = self._image.partition(*key)
            self._stop_fetching(key)
            if state is not None:
                self._to_start[key] = state
