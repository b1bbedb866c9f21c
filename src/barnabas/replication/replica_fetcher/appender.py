"""Applies a leader's responses to the log of a follower: appends, truncates, restarts."""

import logging
from collections.abc import Callable

from barnabas.log import Log
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher.followed_partition import FollowedPartition
from barnabas.replication.replica_fetcher.leader_bounds import LeaderBounds
from barnabas.wire.messages.fetch import PartitionData

_logger = logging.getLogger(__name__)


class InvalidLeaderResponse(Exception):  # noqa: N818 - the leader's error, not ours
    """The leader's response contradicts itself or this log."""


class Appender:
    """Changes the logs of followed partitions.

    `clock` is the wall clock; `on_truncated` is called for each log that was truncated.
    """

    __slots__ = ("_clock", "_on_truncated")

    def __init__(self, clock: Callable[[], int], on_truncated: Callable[[Partition], None]) -> None:
        self._clock = clock
        self._on_truncated = on_truncated

    def append_response(self, followed: FollowedPartition, response: PartitionData) -> None:
        """Appends the records of a response, or truncates the log where it diverges."""
        diverging = response.diverging_epoch
        if diverging.epoch >= 0:
            self._truncate_diverging(followed, diverging.epoch, diverging.end_offset)
            return
        high_watermark, start_offset = response.high_watermark, response.log_start_offset
        if not 0 <= start_offset <= high_watermark:
            raise InvalidLeaderResponse(
                f"its log start offset {start_offset} is above its high watermark {high_watermark}"
            )
        partition, records = followed.partition, response.records
        if records:
            assert isinstance(records, memoryview)
            end_offset = partition.log.log_end_offset
            partition.follower.append(
                records,
                leader_high_watermark=high_watermark,
                leader_log_start_offset=start_offset,
                now_ms=self._clock(),
            )
            if partition.log.log_end_offset == end_offset:
                raise InvalidLeaderResponse(f"its {len(records)} bytes have no whole batch")
        else:
            partition.follower.update_offsets(
                leader_high_watermark=high_watermark, leader_log_start_offset=start_offset
            )
        followed.leader_high_watermark = high_watermark
        followed.error_count = 0

    def restart_within_bounds(self, bounds: LeaderBounds) -> None:
        """Truncates or restarts the log so that it continues within the leader's."""
        followed, _, start_offset, end_offset = bounds
        partition = followed.partition
        own_end_offset = partition.log.log_end_offset
        if not 0 <= start_offset <= end_offset:
            raise InvalidLeaderResponse(
                f"its log begins at {start_offset} and ends at {end_offset}"
            )
        if start_offset <= own_end_offset <= end_offset:
            raise InvalidLeaderResponse(
                f"offset {own_end_offset} is not out of range {start_offset} to {end_offset}"
            )
        is_new = partition.log.log_start_offset == own_end_offset
        _logger.log(
            logging.INFO if is_new else logging.WARNING,
            "%s ends at offset %d, its leader has %d to %d: it continues within these",
            followed.name,
            own_end_offset,
            start_offset,
            end_offset,
        )
        if end_offset < own_end_offset:
            self.truncate(partition, end_offset)
        else:
            partition.follower.truncate_fully_and_start_at(start_offset)
            self._on_truncated(partition)

    def truncate(self, partition: Partition, offset: int) -> None:
        partition.follower.truncate_to(offset)
        self._on_truncated(partition)

    def _truncate_diverging(
        self, followed: FollowedPartition, leader_epoch: int, leader_end_offset: int
    ) -> None:
        log = followed.partition.log
        if leader_end_offset < 0:
            raise InvalidLeaderResponse(
                f"its epoch {leader_epoch} ended at offset {leader_end_offset}"
            )
        before = log.log_end_offset, log.latest_epoch
        self.truncate(followed.partition, truncation_offset(log, leader_epoch, leader_end_offset))
        if log.log_end_offset < before[0]:
            _logger.info(
                "%s is truncated: its leader does not have offsets %d to %d",
                followed.name,
                log.log_end_offset,
                before[0] - 1,
            )
        if (log.log_end_offset, log.latest_epoch) == before:
            raise InvalidLeaderResponse(f"the logs do not diverge at its epoch {leader_epoch}")


def truncation_offset(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """Returns where to truncate a log that diverged from its leader's (KIP-279, KIP-595).

    `leader_epoch` is the leader's largest epoch not above ours, `leader_end_offset` its end. If
    this log does not have that epoch, it is truncated to the end of its largest epoch before, and
    the next fetch compares that one.
    """
    epoch, end_offset = log.epoch_end_offset(leader_epoch)
    if epoch < 0:
        return min(leader_end_offset, log.log_end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log.log_end_offset)
    return min(end_offset, leader_end_offset, log.log_end_offset)
