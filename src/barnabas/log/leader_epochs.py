"""The leader epochs of a log: from which offset on each leader wrote.

Kept in `leader-epoch-checkpoint`. A follower that comes back compares it with the leader's to
find where the two logs part.
"""

from bisect import bisect_right
from typing import NamedTuple

from barnabas.log.checkpoint_file import MalformedCheckpoint, encode_lines, read_lines, replace_file

NO_EPOCH = -1
NO_OFFSET = -1


class EpochStart(NamedTuple):
    """An epoch and the first offset its leader wrote or would have written."""

    epoch: int
    offset: int


class EpochEnd(NamedTuple):
    """An epoch and the first offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN_END = EpochEnd(NO_EPOCH, NO_OFFSET)


class EpochHistory:
    """Epochs and start offsets, both strictly ascending.

    A new epoch is not written down at once: until the log is flushed, recovery reads the epochs
    from the batches again, and an epoch without batches matters to nobody. `unsynced` asks the
    next flush to include the file.
    """

    __slots__ = ("_folder", "_starts", "_unsaved", "latest", "unsynced")

    def __init__(self, folder: str, starts: list[EpochStart]) -> None:
        self._folder = folder
        self._starts = starts
        self.latest = starts[-1].epoch if starts else NO_EPOCH
        self.unsynced = False
        self._unsaved = False

    @classmethod
    def load(cls, folder: str) -> "EpochHistory":
        """The history in the file; MalformedCheckpoint if it is not one."""
        starts: list[EpochStart] = []
        for line in read_lines(path_in(folder)):
            try:
                epoch, offset = map(int, line.split())
            except ValueError:
                raise MalformedCheckpoint(f"{path_in(folder)}: {line!r} is no epoch") from None
            starts.append(EpochStart(epoch, offset))
        return cls(folder, starts)

    @property
    def path(self) -> str:
        return path_in(self._folder)

    @property
    def starts(self) -> tuple[EpochStart, ...]:
        return tuple(self._starts)

    def assign(self, epoch: int, offset: int) -> None:
        """The leader of `epoch` writes from `offset` on; what contradicts it is forgotten."""
        starts = self._starts
        if starts and epoch == starts[-1].epoch and offset >= starts[-1].offset:
            return
        while starts and (starts[-1].epoch >= epoch or starts[-1].offset >= offset):
            starts.pop()
        starts.append(EpochStart(epoch, offset))
        self.latest = epoch
        self.unsynced = self._unsaved = True

    def end_of(self, epoch: int, log_end: int) -> EpochEnd:
        """Where the largest epoch up to `epoch` ended; UNKNOWN_END if there is no telling."""
        starts = self._starts
        if epoch == NO_EPOCH or not starts:
            return UNKNOWN_END
        if epoch == self.latest:
            return EpochEnd(epoch, log_end)
        after = bisect_right(starts, epoch, key=lambda start: start.epoch)
        if after == len(starts):
            return UNKNOWN_END
        if after == 0:
            return EpochEnd(epoch, starts[0].offset)
        return EpochEnd(starts[after - 1].epoch, starts[after].offset)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the leader that wrote `offset`."""
        after = bisect_right(self._starts, offset, key=lambda start: start.offset)
        return self._starts[after - 1].epoch if after else NO_EPOCH

    def truncate_end(self, offset: int) -> None:
        """The log now ends at `offset`."""
        starts = self._starts
        if starts and starts[-1].offset >= offset:
            while starts and starts[-1].offset >= offset:
                starts.pop()
            self._changed()

    def truncate_start(self, offset: int) -> None:
        """The log now begins at `offset`: the epoch written there begins there too."""
        starts = self._starts
        before = bisect_right(starts, offset, key=lambda start: start.offset)
        if before > 1 or (before == 1 and starts[0].offset < offset):
            starts[:before] = [EpochStart(starts[before - 1].epoch, offset)]
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
        self.latest = self._starts[-1].epoch if self._starts else NO_EPOCH
        self.unsynced = self._unsaved = True
        self.save()


def path_in(folder: str) -> str:
    return f"{folder}/leader-epoch-checkpoint"
