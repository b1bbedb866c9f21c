"""Every partition that this broker follows, over connections to the brokers that lead them."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from zlib import crc32

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.metadata.states import NO_LEADER, ListenerEndpoint, PartitionRegistration, endpoint_of
from barnabas.replication.replica_fetcher.replica_fetcher import Fetcher, FetchLimits
from barnabas.replication.replica_fetcher.followed_partition import Followed, Standing
from barnabas.replication.replica_fetcher.leader_connection import Source
from barnabas.replication.partitions import Partitions
from barnabas.replication.throttle import Side, Throttle
from barnabas.replication.topic_config import Settings
from barnabas.wire.errors import KafkaError
from barnabas.wire.peer import Peers

OPENED_AT_ONCE = 16
"""How many logs are opened before others get their turn on the loop."""

_logger = logging.getLogger(__name__)


class Fetchers:
    """Follows leaders as the metadata says.

    `listener` names the one that brokers reach each other by; `clock` is the wall clock, and
    `broker_epoch` what this broker was registered with.
    """

    def __init__(
        self,
        partitions: Partitions,
        peers: Peers,
        settings: Settings,
        *,
        listener: str,
        broker_epoch: Callable[[], int],
        clock: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.throttle = Throttle(Side.FOLLOWER, partitions.node_id, settings)
        self._partitions = partitions
        self._peers = peers
        self._settings = settings
        self._listener = listener
        self._broker_epoch = broker_epoch
        self._clock = clock
        self._loop = loop
        self._image = partitions.image
        self._sources: dict[tuple[int, int], Source] = {}  # by leader, and a number
        self._by_key: dict[PartitionKey, Source] = {}
        self._to_open: dict[PartitionKey, PartitionRegistration] = {}
        self._unopened: dict[PartitionKey, None] = {}
        self._opening: asyncio.Handle | None = None
        self._per_leader: int = settings.broker("num.replica.fetchers")
        self._departed_bytes = 0  # what fetchers that are gone have received

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """The metadata changed; settings and partitions have been told before."""
        self._image = image
        if delta.configs_changed:
            self._obey(delta)
        for topic in delta.topics_deleted.values():
            for index in topic.partitions:
                self._leave((topic.topic_id, index))
        for key, state in delta.partitions_changed.items():
            self._change(key, state)
        if delta.brokers_changed:
            self._look_for_leaders()
        self._open_some()

    def stop(self) -> None:
        """Follow nothing any more."""
        if self._opening is not None:
            self._opening.cancel()
        for source in self._sources.values():
            source.close()
        self._sources = {}
        self._by_key = {}
        self._to_open = {}

    # What is told to a scrape

    def by_leader(self) -> Iterator[tuple[int, int, Fetcher]]:
        """Each fetcher with the leader it asks, and its number among those that do."""
        for (leader_id, number), source in self._sources.items():
            yield leader_id, number, source.fetcher

    def __iter__(self) -> Iterator[Followed]:
        for source in self._sources.values():
            yield from source.fetcher

    @property
    def max_lag(self) -> int:
        """The most offsets that a followed partition is behind."""
        return max((followed.lag for followed in self), default=0)

    @property
    def failed_count(self) -> int:
        """Partitions that are not fetched until the metadata has another leader epoch for them."""
        failed = sum(followed.standing is Standing.FAILED for followed in self)
        return failed + len(self._unopened)

    @property
    def received_bytes(self) -> int:
        """The bytes of records that leaders have sent, ever."""
        fetchers = (source.fetcher for source in self._sources.values())
        return self._departed_bytes + sum(fetcher.received_bytes for fetcher in fetchers)

    # Following the metadata

    def _change(self, key: PartitionKey, state: PartitionRegistration) -> None:
        node_id = self._partitions.node_id
        if node_id not in state.replicas or state.leader in (node_id, NO_LEADER):
            self._leave(key)
            return
        source = self._by_key.get(key)
        followed = source.fetcher.find(key) if source is not None else None
        if source is not None and followed is not None:
            is_same = (source.leader_id, followed.leader_epoch) == (
                state.leader,
                state.leader_epoch,
            )
            if is_same and followed.partition.failure is None:
                return
        self._leave(key)
        self._to_open[key] = state

    def _leave(self, key: PartitionKey) -> None:
        self._to_open.pop(key, None)
        self._unopened.pop(key, None)
        source = self._by_key.pop(key, None)
        if source is not None:
            source.fetcher.remove(key)

    def _open_some(self) -> None:
        """Begin to follow a few partitions; the first look at one opens its log."""
        if self._opening is not None:
            self._opening.cancel()
            self._opening = None
        hurried: dict[Source, None] = {}
        for _ in range(OPENED_AT_ONCE):
            if not self._to_open:
                break
            key = next(iter(self._to_open))
            source = self._begin(key, self._to_open.pop(key))
            if source is not None:
                hurried[source] = None
        for source in hurried:
            source.hurry()
        if self._to_open:
            self._opening = self._loop.call_soon(self._open_some)
        else:
            self._close_idle()

    def _begin(self, key: PartitionKey, state: PartitionRegistration) -> Source | None:
        try:
            partition = self._partitions.get(*key)
        except (KafkaError, OSError) as failure:
            _logger.error("A partition is not followed: %s", failure)
            self._unopened[key] = None
            return None
        if partition.failure is not None:
            self._unopened[key] = None
            return None
        source = self._source_of(state.leader, self._number_of(key))
        self._by_key[key] = source
        source.fetcher.add(partition, state.leader_epoch)
        return source

    def _number_of(self, key: PartitionKey) -> int:
        topic_id, index = key
        return (crc32(topic_id) + index) % self._per_leader

    # Sources

    def _source_of(self, leader_id: int, number: int) -> Source:
        source = self._sources.get((leader_id, number))
        if source is None:
            source = self._sources[leader_id, number] = Source(
                leader_id,
                self._new_fetcher(),
                self._peers,
                self._loop,
                purpose=f"replica-{number}",
                answer_timeout_ms=self._settings.broker("replica.socket.timeout.ms"),
            )
            source.point_at(self._endpoint_of(leader_id))
        return source

    def _new_fetcher(self) -> Fetcher:
        setting = self._settings.broker
        limits = FetchLimits(
            wait_max_ms=setting("replica.fetch.wait.max.ms"),
            min_bytes=setting("replica.fetch.min.bytes"),
            response_max_bytes=setting("replica.fetch.response.max.bytes"),
            partition_max_bytes=setting("replica.fetch.max.bytes"),
            backoff_ms=setting("replica.fetch.backoff.ms"),
        )
        return Fetcher(
            self._partitions.node_id,
            limits,
            broker_epoch=self._broker_epoch,
            clock=self._clock,
            throttle=self.throttle,
            truncated=self._partitions.moves.truncated,
        )

    def _endpoint_of(self, leader_id: int) -> ListenerEndpoint | None:
        broker = self._image.brokers.get(leader_id)
        if broker is None or broker.fenced:
            return None
        return endpoint_of(broker, self._listener)

    def _look_for_leaders(self) -> None:
        for source in self._sources.values():
            source.point_at(self._endpoint_of(source.leader_id))

    def _close_idle(self) -> None:
        idle = [where for where, source in self._sources.items() if not len(source.fetcher)]
        for where in idle:
            source = self._sources.pop(where)
            self._departed_bytes += source.fetcher.received_bytes
            source.close()

    # Settings

    def _obey(self, delta: MetadataDelta) -> None:
        was_throttled = bool(self.throttle)
        self.throttle.obey(delta.configs_changed)
        if was_throttled or self.throttle:
            for source in self._sources.values():
                source.fetcher.settings_changed()
                source.step()
        per_leader = self._settings.broker("num.replica.fetchers")
        if per_leader != self._per_leader:
            self._per_leader = per_leader
            self._spread_again()

    def _spread_again(self) -> None:
        for key in list(self._by_key):
            state = self._image.partition(*key)
            self._leave(key)
            if state is not None:
                self._to_open[key] = state
