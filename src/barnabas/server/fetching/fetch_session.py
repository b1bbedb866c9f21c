"""One fetch session: the partitions a client follows, what it asked of each, what it was told."""

from collections.abc import Hashable
from typing import TYPE_CHECKING

from barnabas.server.fetching.dirty_partitions import Stirred
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData

if TYPE_CHECKING:
    from barnabas.replication import Partition

FIRST_VERSION_WITH_TOPIC_IDS = 13
INITIAL_EPOCH = 0
MAX_INT = 2**31 - 1
_NEVER_ANSWERED = -1

PartitionKey = tuple[str | bytes, int]
"""Topic id (from v13) or name, and partition index: what a session knows a partition by."""

EvictionRank = tuple[bool, int, int]
"""Privileged, number of partitions, session id: the lowest goes first."""


class SessionPartition:
    """One partition of a fetch: what is asked of it, and what was last said of it."""

    __slots__ = (
        "answered_high_watermark",
        "answered_start_offset",
        "current_leader_epoch",
        "fetch_offset",
        "index",
        "is_at_rest",
        "key",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
        "topic_id",
        "watched",
    )

    def __init__(self, key: PartitionKey, topic: FetchTopic, wanted: FetchPartition) -> None:
        self.key = key
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.index = wanted.partition
        self.answered_high_watermark = _NEVER_ANSWERED
        self.answered_start_offset = _NEVER_ANSWERED
        self.partition: Partition | None = None
        """Free for the handler, so that a session looks its partitions up once."""
        self.is_at_rest = False
        """Whether it was read to its end; a session need not look at it before it is stirred."""
        self.watched: tuple[Hashable, ...] = ()
        self.ask(wanted)

    def ask(self, wanted: FetchPartition) -> None:
        self.fetch_offset = wanted.fetch_offset
        self.max_bytes = wanted.partition_max_bytes
        self.current_leader_epoch = wanted.current_leader_epoch
        self.last_fetched_epoch = wanted.last_fetched_epoch
        self.log_start_offset = wanted.log_start_offset

    def is_news(self, high_watermark: int, start_offset: int) -> bool:
        """Whether these ends must be told; records, errors and divergence always are."""
        return (
            high_watermark != self.answered_high_watermark
            or start_offset != self.answered_start_offset
        )

    def must_hear(self, answered: PartitionData) -> bool:
        """Whether an answer without records says anything the client was not told before."""
        return (
            answered.error_code != ErrorCode.NONE
            or self.is_news(answered.high_watermark, answered.log_start_offset)
            or answered.preferred_read_replica != -1
            or answered.diverging_epoch.epoch != -1
        )

    def remember(self, answered: PartitionData) -> None:
        failed = answered.error_code != ErrorCode.NONE or answered.diverging_epoch.epoch != -1
        # After an error, or what sent it back, the next good answer is news, even with the same
        # watermark.
        self.answered_high_watermark = _NEVER_ANSWERED if failed else answered.high_watermark
        self.answered_start_offset = answered.log_start_offset


class FetchSession:
    """The partitions one client is following, and the epoch its next fetch must carry."""

    __slots__ = (
        "counted_size",
        "created_ms",
        "epoch",
        "last_used_ms",
        "matured",
        "partitions",
        "privileged",
        "session_id",
        "stirred",
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
        self.stirred = Stirred(partitions.values())
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = now_ms
        self.last_used_ms = now_ms
        self.counted_size = len(partitions)
        self.matured = False

    @property
    def rank(self) -> EvictionRank:
        return (self.privileged, self.counted_size, self.session_id)

    def update(self, request: FetchRequest, version: int) -> None:
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        partitions = self.partitions
        for topic in request.topics:
            name = topic.topic_id if by_id else topic.topic
            for wanted in topic.partitions:
                key = (name, wanted.partition)
                known = partitions.get(key)
                if known is None:
                    known = partitions[key] = SessionPartition(key, topic, wanted)
                else:
                    known.ask(wanted)
                self.stirred.stir(known)
        for forgotten in request.forgotten_topics_data:
            name = forgotten.topic_id if by_id else forgotten.topic
            for index in forgotten.partitions:
                known = partitions.pop((name, index), None)
                if known is not None:
                    self.stirred.forget(known)


def next_epoch(epoch: int) -> int:
    return 1 if epoch == MAX_INT else epoch + 1
