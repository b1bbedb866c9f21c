"""What the consensus reads of the log, and whether a fetch continues it."""

from typing import Protocol

from barnabas.log import EpochEndOffset
from barnabas.raft.messages import FetchOutcome
from barnabas.raft.snapshots import SnapshotId


class LogView(Protocol):
    """A replica's log, with what a snapshot stands for counted in."""

    @property
    def start_offset(self) -> int: ...

    @property
    def end_offset(self) -> int: ...

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record; 0 if there never was one."""

    @property
    def oldest_snapshot(self) -> SnapshotId | None: ...

    @property
    def newest_snapshot(self) -> SnapshotId | None: ...

    def epoch_end(self, epoch: int) -> EpochEndOffset:
        """The largest epoch up to `epoch` that has records, and where it ends."""


def check_position(log: LogView, offset: int, last_fetched_epoch: int) -> FetchOutcome:
    """What to tell a replica whose log ends at `offset` with a record of that epoch."""
    oldest, newest = log.oldest_snapshot, log.newest_snapshot
    if offset == 0 and newest is not None and newest.end_offset > 0:
        # An empty log is filled faster by a snapshot than by what the snapshot stands for.
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
    """Whether the log no longer reaches back to where the two logs may still agree."""
    return (
        offset < start_offset
        or (offset == start_offset and epoch != oldest.epoch)
        or epoch < oldest.epoch
    )
