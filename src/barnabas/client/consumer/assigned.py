"""One assigned partition, as the loop sees it: where to fetch next, and how that is found out.

                  assign, seek
offset stored? ------+------ beginning, end ------+------ an offset
     |                                            |            |
 COMMITTED  -- none, by auto.offset.reset -->  SEARCHED    VALIDATED
     |                                            |            |
     +---------------------> FETCHED <------------+------------+
                                |    a new leader: VALIDATED
                                +--- out of range: SEARCHED, or STUCK without a policy
"""

import time
from enum import Enum, auto

from barnabas.client.consumer._cursor import Progress
from barnabas.client.consumer.reset import Reset
from barnabas.client.values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartitionTuple,
    TopicPartition,
)

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class State(Enum):
    """What has to happen before, or instead of, the next fetch."""

    COMMITTED = auto()  # the group is asked for its offset
    SEARCHED = auto()  # the leader is asked for an offset by time
    VALIDATED = auto()  # the leader is asked whether it has what comes before the offset (KIP-320)
    FETCHED = auto()
    STUCK = auto()  # the user has been told, and has to seek


class Assigned:
    """A partition from its assignment until it is given up."""

    __slots__ = (
        "asked_version",
        "before",
        "committed_offset",
        "eof_offset",
        "fetch_epoch",
        "fetch_offset",
        "flight_version",
        "high_watermark",
        "hint",
        "is_paused",
        "key",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "progress",
        "queued_records",
        "received_bytes",
        "received_records",
        "replica",
        "replica_until_s",
        "requested_offset",
        "reset",
        "retry_at_s",
        "search_timestamp",
        "state",
        "stored",
        "told_code",
        "unknown_since_s",
    )

    def __init__(self, topic: str, partition: int, reset: Reset) -> None:
        self.key: TopicPartitionTuple = (topic, partition)
        self.progress = Progress(topic, partition)
        self.reset = reset
        self.state = State.COMMITTED
        self.requested_offset = OFFSET_INVALID  # as the user gave it
        self.is_paused = False
        self.fetch_offset = OFFSET_INVALID
        self.fetch_epoch = -1  # of the record before the fetch offset
        self.leader_epoch = -1  # of the leader that has validated the fetch offset
        self.search_timestamp = 0
        self.asked_version: int | None = None  # a question that its state needs is under way
        self.flight_version: int | None = None  # a fetch is under way
        self.retry_at_s = 0.0
        self.replica: int | None = None  # closer than the leader (KIP-392)
        self.replica_until_s = 0.0
        self.hint: tuple[int, int] | None = None  # leader and epoch, before metadata (KIP-951)
        self.queued_records = 0  # fetched and not yet delivered
        self.received_records = 0
        self.received_bytes = 0
        self.high_watermark = OFFSET_INVALID
        self.last_stable_offset = OFFSET_INVALID
        self.log_start_offset = OFFSET_INVALID
        self.eof_offset = OFFSET_INVALID  # the end that the user was told of
        self.told_code = 0  # the error that the user was told of
        self.unknown_since_s: float | None = None  # no broker knows it
        self.before: TopicPartition | None = None  # what was read until it was sought elsewhere
        self.stored: TopicPartition | None = None  # by the user himself
        self.committed_offset = OFFSET_INVALID

    # Where to read

    def begin(self, offset: int, epoch: int = -1) -> None:
        """Read from there on, and deliver nothing that was fetched before."""
        self._renew()
        self.before = self.consumed()
        self.progress.position = OFFSET_INVALID
        self.requested_offset = OFFSET_STORED if offset == OFFSET_INVALID else offset
        self.told_code = 0
        if offset >= 0:
            self._begin_at(offset, epoch)
        elif offset == OFFSET_BEGINNING:
            self._search(EARLIEST_TIMESTAMP)
        elif offset == OFFSET_END:
            self._search(LATEST_TIMESTAMP)
        else:
            self.state = State.COMMITTED

    def found(self, offset: int, epoch: int = -1) -> None:
        """The offset that was asked for."""
        self._begin_at(offset, epoch)

    def start_over(self) -> bool:
        """There is no offset to read from; False if there is no policy for that either."""
        timestamp = self.reset.timestamp(time.time())
        if timestamp is None:
            self.state = State.STUCK
            return False
        self._search(timestamp)
        return True

    def give_up(self) -> None:
        """Nothing that was fetched is delivered any more."""
        self._renew()
        self.progress.live = -1
        self.state = State.STUCK

    def _begin_at(self, offset: int, epoch: int) -> None:
        self.fetch_offset = offset
        self.fetch_epoch = epoch
        self.eof_offset = OFFSET_INVALID
        self.leader_epoch = -1
        self.state = State.VALIDATED if epoch >= 0 else State.FETCHED

    def _search(self, timestamp: int) -> None:
        self.search_timestamp = timestamp
        self.state = State.SEARCHED

    def _renew(self) -> None:
        self.progress.version += 1
        self.progress.live = -1 if self.is_paused else self.progress.version
        self.queued_records = 0
        self.retry_at_s = 0.0
        self.replica = None

    # Whether to read

    def pause(self) -> None:
        self.is_paused = True
        self.progress.live = -1

    def resume(self) -> None:
        self.is_paused = False
        self.progress.live = self.progress.version

    def may_be_fetched(self, now_s: float) -> bool:
        return (
            self.state is State.FETCHED
            and not self.is_paused
            and self.flight_version != self.progress.version
            and now_s >= self.retry_at_s
        )

    @property
    def is_fresh(self) -> bool:
        """Whether no fetch has told anything of it yet."""
        return self.high_watermark < 0

    # What came

    def advance(self, next_offset: int, epoch: int, records: int, size_bytes: int) -> None:
        """Whole batches were fetched, up to there."""
        self.received_records += records
        self.received_bytes += size_bytes
        self.fetch_offset = max(self.fetch_offset, next_offset)
        self.fetch_epoch = epoch
        self.queued_records += records
        self.told_code = 0
        self.unknown_since_s = None

    def led_by(self, epoch: int) -> None:
        """Its leader has this epoch: a new one may lack what was read before (KIP-320)."""
        if self.state is not State.FETCHED or epoch <= self.leader_epoch:
            return
        if self.leader_epoch >= 0 and self.fetch_epoch >= 0:
            self.state = State.VALIDATED
        self.leader_epoch = epoch

    # What the user has read

    def delivered(self) -> TopicPartition | None:
        """The offset after the last message that came since it was assigned or sought."""
        if self.progress.position < 0:
            return None
        topic, partition = self.key
        epoch = self.progress.epoch if self.progress.epoch >= 0 else None
        return TopicPartition(topic, partition, self.progress.position, leader_epoch=epoch)

    def consumed(self) -> TopicPartition | None:
        """What there is to commit: seeking alone changes nothing about that."""
        return self.delivered() or self.before

    @property
    def lag(self) -> int:
        """How many offsets are ahead; -1 before the first fetch has told."""
        end = self.last_stable_offset if self.last_stable_offset >= 0 else self.high_watermark
        position = self.progress.position if self.progress.position >= 0 else self.fetch_offset
        return max(0, end - position) if end >= 0 and position >= 0 else -1
