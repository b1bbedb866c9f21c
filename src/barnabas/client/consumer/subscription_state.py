"""The state of an assigned partition: its fetch position, and how the position is found.

    assign or seek, to
committed offset           beginning or end         an offset
        |                          |                     |
        v     no offset            v                     v
  INITIALIZING  ----------->  AWAIT_RESET        AWAIT_VALIDATION
        |                          |                     |
        +--------------------> FETCHING <----------------+
                                   |
    a new leader epoch: AWAIT_VALIDATION; out of range: AWAIT_RESET,
    or STOPPED if auto.offset.reset is none
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
    PartitionKey,
    TopicPartition,
)

EARLIEST_TIMESTAMP = -2
LATEST_TIMESTAMP = -1


class FetchState(Enum):
    """What a partition needs before its next fetch."""

    INITIALIZING = auto()  # the committed offset is requested from the group
    AWAIT_RESET = auto()  # an offset by timestamp is requested from the leader
    AWAIT_VALIDATION = auto()  # the leader may have truncated the log before it (KIP-320)
    FETCHING = auto()
    STOPPED = auto()  # the error was reported, and the user has to seek


class TopicPartitionState:
    """An assigned partition: its fetch position, progress and offsets."""

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
        self.key: PartitionKey = (topic, partition)
        self.progress = ConsumerProgress(topic, partition)
        self.reset_strategy = reset
        self.state = FetchState.INITIALIZING
        self.requested_offset = OFFSET_INVALID  # as the user gave it
        self.is_paused = False
        self.fetch_offset = OFFSET_INVALID
        self.fetch_epoch = -1  # of the record before the fetch offset
        self.leader_epoch = -1  # of the leader that has validated the fetch offset
        self.reset_timestamp = 0
        self.pending_version: int | None = None  # its position is requested
        self.in_flight_version: int | None = None  # a fetch is in flight
        self.retry_at_s = 0.0
        self.read_replica = ReadReplica()
        self.queued_records = 0  # fetched and not yet delivered
        self.received_records = 0
        self.received_bytes = 0
        self.high_watermark = OFFSET_INVALID
        self.last_stable_offset = OFFSET_INVALID
        self.log_start_offset = OFFSET_INVALID
        self.eof_offset = OFFSET_INVALID  # the reported end
        self.reported_error_code = 0
        self.unknown_since_s: float | None = None  # on all brokers
        self.offset_before_seek: TopicPartition | None = None  # consumed before the last seek
        self.stored_offset: TopicPartition | None = None  # by store_offsets()
        self.committed_offset = OFFSET_INVALID

    # Position

    def seek(self, offset: int, epoch: int = -1) -> None:
        """Continues at an offset, and discards what was fetched before."""
        self._discard_fetched()
        self.offset_before_seek = self.offset_to_commit()
        self.progress.position = OFFSET_INVALID
        self.requested_offset = OFFSET_STORED if offset == OFFSET_INVALID else offset
        self.reported_error_code = 0
        if offset >= 0:
            self._fetch_from(offset, epoch)
        elif offset == OFFSET_BEGINNING:
            self._await_reset(EARLIEST_TIMESTAMP)
        elif offset == OFFSET_END:
            self._await_reset(LATEST_TIMESTAMP)
        else:
            self.state = FetchState.INITIALIZING

    def set_position(self, offset: int, epoch: int = -1) -> None:
        """Sets the position that was requested."""
        self._fetch_from(offset, epoch)

    def request_reset(self) -> bool:
        """Resets the position by auto.offset.reset; returns False, and stops, if it is none."""
        timestamp = self.reset_strategy.timestamp(time.time())
        if timestamp is None:
            self.state = FetchState.STOPPED
            return False
        self._await_reset(timestamp)
        return True

    def revoke(self) -> None:
        """Stops the partition, and discards what was fetched."""
        self._discard_fetched()
        self.progress.live_version = -1
        self.state = FetchState.STOPPED

    def _fetch_from(self, offset: int, epoch: int) -> None:
        self.fetch_offset = offset
        self.fetch_epoch = epoch
        self.eof_offset = OFFSET_INVALID
        self.leader_epoch = -1
        self.state = FetchState.AWAIT_VALIDATION if epoch >= 0 else FetchState.FETCHING

    def _await_reset(self, timestamp: int) -> None:
        self.reset_timestamp = timestamp
        self.state = FetchState.AWAIT_RESET

    def _discard_fetched(self) -> None:
        self.progress.version += 1
        self.progress.live_version = -1 if self.is_paused else self.progress.version
        self.queued_records = 0
        self.retry_at_s = 0.0
        self.read_replica.prefer_leader()

    # Fetching

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
        """Whether no fetch response had the partition yet."""
        return self.high_watermark < 0

    # What came

    def on_fetched(self, next_offset: int, epoch: int, records: int, size_bytes: int) -> None:
        """Advances the position after whole batches were fetched."""
        self.received_records += records
        self.received_bytes += size_bytes
        self.fetch_offset = max(self.fetch_offset, next_offset)
        self.fetch_epoch = epoch
        self.queued_records += records
        self.reported_error_code = 0
        self.unknown_since_s = None

    def on_leader_epoch(self, epoch: int) -> None:
        """Notes the leader epoch: a new leader may have truncated its log (KIP-320)."""
        if self.state is not FetchState.FETCHING or epoch <= self.leader_epoch:
            return
        if self.leader_epoch >= 0 and self.fetch_epoch >= 0:
            self.state = FetchState.AWAIT_VALIDATION
        self.leader_epoch = epoch

    # Consumed offsets

    def position(self) -> TopicPartition | None:
        """Returns the offset after the last message delivered since the assignment or seek."""
        if self.progress.position < 0:
            return None
        topic, partition = self.key
        epoch = self.progress.leader_epoch if self.progress.leader_epoch >= 0 else None
        return TopicPartition(topic, partition, self.progress.position, leader_epoch=epoch)

    def offset_to_commit(self) -> TopicPartition | None:
        """Returns the offset to commit; a seek alone does not change it."""
        return self.position() or self.offset_before_seek

    @property
    def lag(self) -> int:
        """The number of offsets to the end of the partition; -1 before the first fetch."""
        position = self.progress.position if self.progress.position >= 0 else self.fetch_offset
        end_offset = self.end_offset
        return max(0, end_offset - position) if end_offset >= 0 and position >= 0 else -1

    @property
    def end_offset(self) -> int:
        """The last stable offset, or the high watermark if the broker does not report it."""
        return self.last_stable_offset if self.last_stable_offset >= 0 else self.high_watermark


_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?"
    r"(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_BY_DURATION = "by_duration:"


@dataclass(slots=True, frozen=True)
class AutoOffsetResetStrategy:
    """auto.offset.reset: earliest, latest, none, or by_duration with an ISO 8601 duration."""

    policy: str

    def timestamp(self, now_s: float) -> int | None:
        """Returns the timestamp for ListOffsets; None if the user has to seek."""
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
