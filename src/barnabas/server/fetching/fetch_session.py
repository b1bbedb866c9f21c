"""One fetch session: its partitions, what the client requests of them and what it received."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

from barnabas.server.fetching.dirty_partitions import DirtyPartitions
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from barnabas.replication import Partition

FIRST_VERSION_WITH_TOPIC_IDS = 13
INITIAL_EPOCH = 0
MAX_INT = 2**31 - 1
_NEVER_RETURNED = -1

PartitionKey = tuple[str | bytes, int]
"""Topic id (from v13) or name, and partition index."""

EvictionRank = tuple[bool, int, int]
"""Privileged, number of partitions, session id: the lowest is evicted first."""


class SessionPartition:
    """One partition of a fetch: what is requested, and what the client last received."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "is_caught_up",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "returned_high_watermark",
        "returned_log_start_offset",
        "topic",
        "topic_id",
        "watched_keys",
    )

    def __init__(self, key: PartitionKey, topic: FetchTopic, requested: FetchPartition) -> None:
        self.key = key
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.index = requested.partition
        self.returned_high_watermark = _NEVER_RETURNED
        self.returned_log_start_offset = _NEVER_RETURNED
        self.partition: Partition | None = None
        """Set by the handler, so that a session looks its partitions up once."""
        self.is_caught_up = False
        """Whether it was read to its end; it need not be read again before it is marked dirty."""
        self.watched_keys: tuple[Hashable, ...] = ()
        self.update(requested)

    def update(self, requested: FetchPartition) -> None:
        self.set_requested(
            requested.fetch_offset,
            requested.partition_max_bytes,
            requested.current_leader_epoch,
            requested.last_fetched_epoch,
            requested.log_start_offset,
        )

    def set_requested(
        self,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        log_start_offset: int,
    ) -> None:
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset

    def has_changed(self, high_watermark: int, start_offset: int) -> bool:
        """Returns whether the client has not received these offsets yet."""
        return (
            high_watermark != self.returned_high_watermark
            or start_offset != self.returned_log_start_offset
        )

    def must_return(self, result: PartitionData) -> bool:
        """Returns whether a result without records contains anything new to the client."""
        return (
            result.error_code != ErrorCode.NONE
            or self.has_changed(result.high_watermark, result.log_start_offset)
            or result.preferred_read_replica != -1
            or result.diverging_epoch.epoch != -1
        )

    def record_returned(self, result: PartitionData) -> None:
        failed = result.error_code != ErrorCode.NONE or result.diverging_epoch.epoch != -1
        # After an error or a divergence the next good result must be returned, even with the same
        # high watermark.
        high_watermark = _NEVER_RETURNED if failed else result.high_watermark
        self.record_returned_offsets(high_watermark, result.log_start_offset)

    def record_returned_offsets(self, high_watermark: int, log_start_offset: int) -> None:
        self.returned_high_watermark = high_watermark
        self.returned_log_start_offset = log_start_offset


class FetchSession:
    """The partitions that one client fetches, and the epoch that its next fetch must have."""

    __slots__ = (
        "cached_size",
        "checked_client",
        "created_ms",
        "dirty",
        "epoch",
        "is_mature",
        "last_used_ms",
        "partitions",
        "privileged",
        "session_id",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        partitions: dict[PartitionKey, SessionPartition],
        privileged: bool,
        uses_topic_ids: bool,
        now_ms: int,
    ) -> None:
        self.session_id = session_id
        self.partitions = partitions
        self.dirty = DirtyPartitions(partitions.values())
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.cached_size = len(partitions)
        self.is_mature = False
        self.checked_client: object = None
        """The client that may read all partitions, and the generation of that decision."""

    @property
    def rank(self) -> EvictionRank:
        return (self.privileged, self.cached_size, self.session_id)

    def update(self, request: FetchRequest, version: int) -> None:
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        partitions = self.partitions
        for topic in request.topics:
            name = topic.topic_id if by_id else topic.topic
            for requested in topic.partitions:
                key = (name, requested.partition)
                existing = partitions.get(key)
                if existing is None:
                    existing = partitions[key] = SessionPartition(key, topic, requested)
                else:
                    existing.update(requested)
                self.dirty.mark_dirty(existing)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                existing = partitions.pop((name, index), None)
                if existing is not None:
                    self.dirty.remove(existing)


def next_epoch(epoch: int) -> int:
    return 1 if epoch == MAX_INT else epoch + 1
