"""What a leader's answers do to the log of a follower: append, cut, begin elsewhere."""

import logging
from collections.abc import Callable

from barnabas.log import Log
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher.followed_partition import Followed
from barnabas.replication.replica_fetcher.leader_bounds import Located
from barnabas.wire.messages.fetch import PartitionData

_logger = logging.getLogger(__name__)


class Nonsense(Exception):  # noqa: N818 - it is theirs, not ours
    """The leader's answer cannot be true, or nothing follows from it."""


class Intake:
    """Changes logs as leaders say, where that makes sense.

    `clock` is the wall clock, `truncated` is told of each log that was cut.
    """

    __slots__ = ("_clock", "_truncated")

    def __init__(self, clock: Callable[[], int], truncated: Callable[[Partition], None]) -> None:
        self._clock = clock
        self._truncated = truncated

    def take(self, followed: Followed, answer: PartitionData) -> None:
        """Append the records of an answer without error, or cut what they cannot go on from."""
        diverging = answer.diverging_epoch
        if diverging.epoch >= 0:
            self._part(followed, diverging.epoch, diverging.end_offset)
            return
        high_watermark, start_offset = answer.high_watermark, answer.log_start_offset
        if not 0 <= start_offset <= high_watermark:
            raise Nonsense(f"it begins at {start_offset} and counts up to {high_watermark}")
        partition, records = followed.partition, answer.records
        if records:
            assert isinstance(records, memoryview)
            end_offset = partition.log.end_offset
            partition.replicate(
                records,
                leader_high_watermark=high_watermark,
                leader_start_offset=start_offset,
                now_ms=self._clock(),
            )
            if partition.log.end_offset == end_offset:
                raise Nonsense(f"its {len(records)} bytes hold no whole batch")
        else:
            partition.follow_high_watermark(
                leader_high_watermark=high_watermark, leader_start_offset=start_offset
            )
        followed.leader_high_watermark = high_watermark
        followed.refusals = 0

    def place(self, located: Located) -> None:
        """Go on within the leader's log, whose bounds are known now."""
        followed, _, start_offset, end_offset = located
        partition = followed.partition
        own_end_offset = partition.log.end_offset
        if not 0 <= start_offset <= end_offset:
            raise Nonsense(f"it has offsets {start_offset} to {end_offset}")
        if start_offset <= own_end_offset <= end_offset:
            raise Nonsense(f"offset {own_end_offset} is within {start_offset} to {end_offset}")
        is_new = partition.log.start_offset == own_end_offset
        _logger.log(
            logging.INFO if is_new else logging.WARNING,
            "%s ends at offset %d, its leader has %d to %d: it follows from there",
            followed.name,
            own_end_offset,
            start_offset,
            end_offset,
        )
        if end_offset < own_end_offset:
            self.truncate(partition, end_offset)
        else:
            partition.restart_at(start_offset)
            self._truncated(partition)

    def truncate(self, partition: Partition, offset: int) -> None:
        partition.truncate_to(offset)
        self._truncated(partition)

    def _part(self, followed: Followed, leader_epoch: int, leader_end_offset: int) -> None:
        log = followed.partition.log
        if leader_end_offset < 0:
            raise Nonsense(f"its epoch {leader_epoch} ended at offset {leader_end_offset}")
        before = log.end_offset, log.latest_epoch
        self.truncate(followed.partition, truncation_offset(log, leader_epoch, leader_end_offset))
        if log.end_offset < before[0]:
            _logger.info(
                "%s lets go of offsets %d to %d, which its leader never had",
                followed.name,
                log.end_offset,
                before[0] - 1,
            )
        if (log.end_offset, log.latest_epoch) == before:
            raise Nonsense(f"its epoch {leader_epoch} parts from nothing that is here")


def truncation_offset(log: Log, leader_epoch: int, leader_end_offset: int) -> int:
    """The end of what may be common, by the leader's largest epoch not above ours, and its end.

    An epoch that this log does not have cannot end the common part: then it ends with our
    largest epoch before that one, and the next fetch asks about that.
    """
    epoch, end_offset = log.epoch_end(leader_epoch)
    if epoch < 0:
        return min(leader_end_offset, log.end_offset)
    if epoch != leader_epoch:
        return min(end_offset, log.end_offset)
    return min(end_offset, leader_end_offset, log.end_offset)
