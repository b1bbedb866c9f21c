"""What the consensus reads of the log, and where a fetcher's log diverges from it."""

from typing import Protocol

from barnabas.log import EpochEndOffset
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.snapshots import SnapshotId


class LogView(Protocol):
    """A replica's log, including the records that a snapshot replaces."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; 0 if the log never had one."""

    @property
    def oldest_snapshot(self) -> SnapshotId | None: ...

    @property
    def newest_snapshot(self) -> SnapshotId | None: ...

    def epoch_end(self, epoch: int) -> EpochEndOffset:
        """Returns the largest epoch up to `epoch` that has records, and its end offset."""


def check_position(log: LogView, offset: int, last_fetched_epoch: int) -> FetchOutcome:
    """Returns the outcome of a fetch by a replica whose log ends at `offset` in that epoch."""
    oldest, newest = log.oldest_snapshot, log.newest_snapshot
    if offset == 0 and newest is not None and newest.end_offset > 0:
        # A snapshot fills an empty log faster than the records that it replaces.
        return FetchOutcome(snapshot=newest)
    if offset == 0 and log.start_offset == 0:
        return FetchOutcome()
    if oldest is not None and _is_before(log.start_offset, oldest, offset, last_fetched_epoch):
        return FetchOutcome(snapshot=newest)
    end = log.epoch_end(last_fetched_epoch)
    if end.epoch != last_fetched_epoch or end.end_offset < offset:
        return FetchOutcome(diverging=end)
    return FetchOutcome()


def _is_before(start_offset: int, oldest: SnapshotId, offset: int, epoch: int) -> bool:
    """Whether this log no longer has the offset up to which the two logs may agree."""
    return (
        offset < start_offset
        or (offset == start_offset and epoch != oldest.epoch)
        or epoch < oldest.epoch
    )
