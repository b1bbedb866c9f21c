"""The follower's role of a partition: its log becomes like the leader's."""

import logging
from typing import TYPE_CHECKING

from barnabas.log import LogAppendInfo, LogDirFailure
from barnabas.wire.records.batch import iterate_batches

if TYPE_CHECKING:
    from barnabas.replication.partition import Partition

_logger = logging.getLogger(__name__)


class FollowerReplica:
    """Applies to one partition what its leader sends. It has no state but the partition's."""

    __slots__ = ("_partition",)

    def __init__(self, partition: "Partition") -> None:
        self._partition = partition

    def append(
        self,
        records: memoryview,
        *,
        leader_high_watermark: int,
        leader_log_start_offset: int,
        now_ms: int,
    ) -> LogAppendInfo:
        """Appends the leader's records as they are, and follows its high watermark.

        Raises CorruptBatch if the bytes are damaged, KafkaError OFFSET_OUT_OF_RANGE if they do not
        continue this log, LogDirFailure if the disk fails.
        """
        partition = self._partition
        log = partition.log
        try:
            self._begin_within_batch(records)
            appended = log.append_as_follower(records, now_ms, leader_epoch=partition.leader_epoch)
        except LogDirFailure as failure:
            partition.host.handle_log_dir_failure(partition.directory, failure)
            raise
        self.update_offsets(
            leader_high_watermark=leader_high_watermark,
            leader_log_start_offset=leader_log_start_offset,
        )
        if partition.config.flushes_by_count and log.flusher.is_due(now_ms):
            partition.host.request_flush(partition)
        return appended

    def update_offsets(self, *, leader_high_watermark: int, leader_log_start_offset: int) -> None:
        """Follows the leader's high watermark and log start offset, up to the end of this log."""
        partition = self._partition
        log = partition.log
        high_watermark = min(leader_high_watermark, log.log_end_offset)
        if high_watermark > partition.high_watermark:
            partition.high_watermark = high_watermark
            log.producers.on_high_watermark_updated(high_watermark)
            partition.purgatory.notify(partition)
        log_start_offset = min(leader_log_start_offset, log.log_end_offset)
        if log_start_offset > log.log_start_offset:
            partition.advance_log_start_offset(log_start_offset)

    def truncate_to(self, offset: int) -> None:
        """Drops the records from `offset` on, which the leader does not have.

        Committed records go only after an unclean leader election, and with a warning.
        """
        partition = self._partition
        if offset < partition.high_watermark:
            _logger.warning(
                "%s-%d loses committed records: its leader of epoch %d ends at offset %d, its high "
                "watermark is %d",
                partition.topic,
                partition.index,
                partition.leader_epoch,
                offset,
                partition.high_watermark,
            )
        with partition.reporting_log_dir_failure():
            partition.log.truncate_to(offset)
        partition.high_watermark = min(partition.high_watermark, partition.log.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drops everything: the leader has no records older than `offset` any more."""
        partition = self._partition
        with partition.reporting_log_dir_failure():
            partition.log.truncate_fully_and_start_at(offset)
        partition.high_watermark = offset

    def _begin_within_batch(self, records: memoryview) -> None:
        """An empty log begins where the leader's first batch does.

        DeleteRecords may have left the leader's log start offset within a batch, which is sent
        whole.
        """
        log = self._partition.log
        if log.log_start_offset < log.log_end_offset:
            return
        first = next((header for _, header in iterate_batches(records)), None)
        if first is not None and first.base_offset < log.log_end_offset <= first.last_offset:
            log.truncate_fully_and_start_at(first.base_offset)
            self._partition.high_watermark = first.base_offset
