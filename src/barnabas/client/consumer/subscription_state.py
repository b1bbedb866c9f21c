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

import re
import time
from dataclasses import dataclass
from enum import Enum, auto

from barnabas.client.consumer._completed_fetch import ConsumerProgress
from barnabas.client.consumer.fetch_results import ReadReplica
from barnabas.client.values import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    OFFSET_STORED,
    TopicPartition,
    TopicPartitionTuple,
)

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class FetchState(Enum):
    """What has to happen before, or instead of, the next fetch."""

    INITIALIZING = auto()  # the group is asked for its offset
    AWAIT_RESET = auto()  # the leader is asked for an offset by time
    AWAIT_VALIDATION = (
        auto()
    )  # the leader is asked whether it has what comes before the offset (KIP-320)
    FETCHING = auto()
    STOPPED = auto()  # the user has been told, and has to seek


class TopicPartitionState:
    """A partition from its assignment until it is given up."""

    __slots__ = (
        "committed_offset",
        "eof_offset",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "in_flight_version",
        "is_paused",
        "key",
        "last_stable_offset",
        "leader_epoch",
        "log_start_offset",
        "offset_before_seek",
        "pending_version",
        "progress",
        "queued_records",
        "read_replica",
        "received_bytes",
        "received_records",
        "reported_error_code",
        "requested_offset",
        "reset_strategy",
        "reset_timestamp",
        "retry_at_s",
        "state",
        "stored_offset",
        "unknown_since_s",
    )

    def __init__(self, topic: str, partition: int, reset: "AutoOffsetResetStrategy") -> None:
        self.key: TopicPartitionTuple = (topic, partition)
        self.progress = ConsumerProgress(topic, partition)
        self.reset_strategy = reset
        self.state = FetchState.INITIALIZING
        self.requested_offset = OFFSET_INVALID  # as the user gave it
        self.is_paused = False
        self.fetch_offset = OFFSET_INVALID
        self.fetch_epoch = -1  # of the record before the fetch offset
        self.leader_epoch = -1  # of the leader that has validated the fetch offset
        self.reset_timestamp = 0
        self.pending_version: int | None = None  # a question that its state needs is under way
        self.in_flight_version: int | None = None  # a fetch is under way
        self.retry_at_s = 0.0
        self.read_replica = ReadReplica()
        self.queued_records = 0  # fetched and not yet delivered
        self.received_records = 0
        self.received_bytes = 0
        self.high_watermark = OFFSET_INVALID
        self.last_stable_offset = OFFSET_INVALID
        self.log_start_offset = OFFSET_INVALID
        self.eof_offset = OFFSET_INVALID  # the end that the user was told of
        self.reported_error_code = 0  # the error that the user was told of
        self.unknown_since_s: float | None = None  # no broker knows it
        self.offset_before_seek: TopicPartition | None = (
            None  # what was read until it was sought elsewhere
        )
        self.stored_offset: TopicPartition | None = None  # by the user himself
        self.committed_offset = OFFSET_INVALID

    # Where to read

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Read from there on, and deliver nothing that was fetched before."""
        self._renew()
        self.offset_before_seek = self.offset_to_commit()
        self.progress.position = OFFSET_INVALID
        self.requested_offset = OFFSET_STORED if offset == OFFSET_INVALID else offset
        self.reported_error_code = 0
        if offset >= 0:
            self._begin_at(offset, epoch)
        elif offset == OFFSET_BEGINNING:
            self._search(EARLIEST_TIMESTAMP)
        elif offset == OFFSET_END:
            self._search(LATEST_TIMESTAMP)
        else:
            self.state = FetchState.INITIALIZING

    def set_position(self, offset: int, epoch: int = -1) -> None:
        """The offset that was asked for."""
        self._begin_at(offset, epoch)

    def request_reset(self) -> bool:
        """There is no offset to read from; False if there is no policy for that either."""
        timestamp = self.reset_strategy.timestamp(time.time())
        if timestamp is None:
            self.state = FetchState.STOPPED
            return False
        self._search(timestamp)
        return True

    def revoke(self) -> None:
        """Nothing that was fetched is delivered any more."""
        self._renew()
        self.progress.live_version = -1
        self.state = FetchState.STOPPED

    def _begin_at(self, offset: int, epoch: int) -> None:
        self.fetch_offset = offset
        self.fetch_epoch = epoch
        self.eof_offset = OFFSET_INVALID
        self.leader_epoch = -1
        self.state = FetchState.AWAIT_VALIDATION if epoch >= 0 else FetchState.FETCHING

    def _search(self, timestamp: int) -> None:
        self.reset_timestamp = timestamp
        self.state = FetchState.AWAIT_RESET

    def _renew(self) -> None:
        self.progress.version += 1
        self.progress.live_version = -1 if self.is_paused else self.progress.version
        self.queued_records = 0
        self.retry_at_s = 0.0
        self.read_replica.prefer_leader()

    # Whether to read

    def pause(self) -> None:
        self.is_paused = True
        self.progress.live_version = -1

    def resume(self) -> None:
        self.is_paused = False
        self.progress.live_version = self.progress.version

    def is_fetchable(self, now_s: float) -> bool:
        return (
            self.state is FetchState.FETCHING
            and not self.is_paused
            and self.in_flight_version != self.progress.version
            and now_s >= self.retry_at_s
        )

    @property
    def is_unfetched(self) -> bool:
        """Whether no fetch has told anything of it yet."""
        return self.high_watermark < 0

    # What came

    def on_fetched(self, next_offset: int, epoch: int, records: int, size_bytes: int) -> None:
        """Whole batches were fetched, up to there."""
        self.received_records += records
        self.received_bytes += size_bytes
        self.fetch_offset = max(self.fetch_offset, next_offset)
        self.fetch_epoch = epoch
        self.queued_records += records
        self.reported_error_code = 0
        self.unknown_since_s = None

    def on_leader_epoch(self, epoch: int) -> None:
        """Its leader has this epoch: a new one may lack what was read before (KIP-320)."""
        if self.state is not FetchState.FETCHING or epoch <= self.leader_epoch:
            return
        if self.leader_epoch >= 0 and self.fetch_epoch >= 0:
            self.state = FetchState.AWAIT_VALIDATION
        self.leader_epoch = epoch

    # What the user has read

    def position(self) -> TopicPartition | None:
        """The offset after the last message that came since it was assigned or sought."""
        if self.progress.position < 0:
            return None
        topic, partition = self.key
        epoch = self.progress.leader_epoch if self.progress.leader_epoch >= 0 else None
        return TopicPartition(topic, partition, self.progress.position, leader_epoch=epoch)

    def offset_to_commit(self) -> TopicPartition | None:
        """What there is to commit: seeking alone changes nothing about that."""
        return self.position() or self.offset_before_seek

    @property
    def lag(self) -> int:
        """How many offsets are ahead; -1 before the first fetch has told."""
        end = self.last_stable_offset if self.last_stable_offset >= 0 else self.high_watermark
        position = self.progress.position if self.progress.position >= 0 else self.fetch_offset
        return max(0, end - position) if end >= 0 and position >= 0 else -1


_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_BY_DURATION = "by_duration:"


@dataclass(slots=True, frozen=True)
class AutoOffsetResetStrategy:
    """The policy: earliest, latest, none, or by_duration with a duration as ISO 8601 has it."""

    policy: str

    def timestamp(self, now_s: float) -> int | None:
        """The time to ask ListOffsets for; None if the user has to say himself."""
        match self.policy:
            case "earliest":
                return -2
            case "latest":
                return -1
            case "none":
                return None
            case _:
                return int(1000 * (now_s - _seconds(self.policy.removeprefix(_BY_DURATION))))


def _seconds(duration: str) -> float:
    parsed = _DURATION.fullmatch(duration)
    if parsed is None:
        raise ValueError(f"auto.offset.reset by_duration takes PnDTnHnMn.nS, not {duration!r}")
    days, hours, minutes, seconds = (float(part or 0) for part in parsed.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
