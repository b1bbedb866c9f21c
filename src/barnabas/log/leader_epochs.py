"""The leader epochs of a log: from which offset on each leader wrote.

Kept in `leader-epoch-checkpoint`. A follower that comes back compares it with the leader's to
find where the two logs part.
"""

from bisect import bisect_right
from typing import NamedTuple

from barnabas.log.checkpoint_file import MalformedCheckpoint, encode_lines, read_lines, replace_file

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEntry(NamedTuple):
    """An epoch and the first offset its leader wrote or would have written."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """An epoch and the first offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN_END = EpochEndOffset(NO_EPOCH, NO_OFFSET)


class LeaderEpochCache:
    """Epochs and start offsets, both strictly ascending.

    A new epoch is not written down at once: until the log is flushed, recovery reads the epochs
    from the batches again, and an epoch without batches matters to nobody. `unsynced` asks the
    next flush to include the file.
    """

    __slots__ = ("_folder", "_starts", "_unsaved", "latest_epoch", "needs_sync")

    def __init__(self, folder: str, starts: list[EpochEntry]) -> None:
        self._folder = folder
        self._starts = starts
        self.latest_epoch = starts[-1].epoch if starts else NO_EPOCH
        self.needs_sync = False
        self._unsaved = False

    @classmethod
    def load(cls, folder: str) -> "LeaderEpochCache":
        """The history in the file; MalformedCheckpoint if it is not one."""
        starts: list[EpochEntry] = []
        for line in read_lines(path_in(folder)):
            try:
                epoch, offset = map(int, line.split())
            except ValueError:
                raise MalformedCheckpoint(f"{path_in(folder)}: {line!r} is no epoch") from None
            starts.append(EpochEntry(epoch, offset))
        return cls(folder, starts)

    @property
    def path(self) -> str:
        return path_in(self._folder)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._starts)

    def assign(self, epoch: int, offset: int) -> None:
        """The leader of `epoch` writes from `offset` on; what contradicts it is forgotten."""
        starts = self._starts
        if starts and epoch == starts[-1].epoch and offset >= starts[-1].start_offset:
            return
        while starts and (starts[-1].epoch >= epoch or starts[-1].start_offset >= offset):
            starts.pop()
        starts.append(EpochEntry(epoch, offset))
        self.latest_epoch = epoch
        self.needs_sync = self._unsaved = True

    def end_offset_for(self, epoch: int, log_end: int) -> EpochEndOffset:
        """Where the largest epoch up to `epoch` ended; UNKNOWN_END if there is no telling."""
        starts = self._starts
        if epoch == NO_EPOCH or not starts:
            return UNKNOWN_END
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end)
        after = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if after == len(starts):
            return UNKNOWN_END
        if after == 0:
            return EpochEndOffset(epoch, starts[0].start_offset)
        return EpochEndOffset(starts[after - 1].epoch, starts[after].start_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the leader that wrote `offset`."""
        after = bisect_right(self._starts, offset, key=lambda start: start.start_offset)
        return self._starts[after - 1].epoch if after else NO_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """The log now ends at `offset`."""
        starts = self._starts
        if starts and starts[-1].start_offset >= offset:
            while starts and starts[-1].start_offset >= offset:
                starts.pop()
            self._changed()

    def truncate_from_start(self, offset: int) -> None:
        """The log now begins at `offset`: the epoch written there begins there too."""
        starts = self._starts
        before = bisect_right(starts, offset, key=lambda start: start.start_offset)
        if before > 1 or (before == 1 and starts[0].start_offset < offset):
            starts[:before] = [EpochEntry(starts[before - 1].epoch, offset)]
            self._changed()

    def clear(self) -> None:
        if self._starts:
            self._starts.clear()
            self._changed()

    def save(self) -> None:
        """Writes the file if it does not say the same already."""
        if self._unsaved:
            lines = (f"{epoch} {offset}" for epoch, offset in self._starts)
            replace_file(self.path, encode_lines(lines), sync=False)
            self._unsaved = False

    def _changed(self) -> None:
        """What was cut away must not come back: the file changes with the history."""
        self.latest_epoch = self._starts[-1].epoch if self._starts else NO_EPOCH
        self.needs_sync = self._unsaved = True
        self.save()


def path_in(folder: str) -> str:
    return f"{folder}/leader-epoch-checkpoint"
