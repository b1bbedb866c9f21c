# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""What every append to a partition reads and changes, for compiled callers.

`Partition` extends `PartitionEnd`. A plain append is one that `barnabas.log._append` describes, to
a partition whose appends are not flushed by their count.
"""

from __future__ import annotations

from barnabas.log._append import NOT_PLAIN, LogEnd
from barnabas.log.errors import LogDirFailure

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Long = cython.typedef(cython.longlong)

_NOT_PLAIN = cython.declare(cython.longlong, NOT_PLAIN)
_ACKS_ALL = cython.declare(cython.longlong, -1)


@cython.cclass
class PartitionEnd:
    """The end of a partition, where its leader appends."""

    def append_plain(self, batch, acks, now_ms):
        """Appends a batch as the leader and returns its first offset.

        Returns NOT_PLAIN if nothing was changed, and `Partition.append_validated` has to do it.
        """
        if (
            not self.is_leader
            or (acks == _ACKS_ALL and self.is_under_min_isr)
            or self.flush_before_ack_offset > 0
            or self.config.flushes_by_count
        ):
            return _NOT_PLAIN
        log: LogEnd = self.log
        first_offset: Long
        try:
            first_offset = log.append_plain(batch, self.leader_epoch, now_ms)
        except LogDirFailure as failure:
            self.host.handle_log_dir_failure(log.directory, failure)
            raise
        if first_offset != _NOT_PLAIN:
            self.on_appended(first_offset, batch.size_bytes, now_ms)
        return first_offset

    def on_appended(self, first_offset, size_bytes, now_ms):
        """A batch was appended to the log: readers may read it, or followers may fetch it."""
        log: LogEnd = self.log
        if self.leader_state is None:
            # The only replica commits by appending.
            self.high_watermark = log.log_end_offset
            self.purgatory.notify(self, size_bytes)
        else:
            self.leader_state.on_append(first_offset, size_bytes, now_ms)

    def is_plain_append_committed(self, next_offset, acks):
        """Does the same as `Partition.is_committed`, for a plain append."""
        return acks != _ACKS_ALL or self.high_watermark >= next_offset
