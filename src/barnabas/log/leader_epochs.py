"""The leader epochs of a log, and the offset at which each begins.

They are stored in `leader-epoch-checkpoint`. A follower that reentries compares them with its
leader's to find where the two logs diverge.
"""

from bisect import bisect_right
from typing import NamedTuple

from barnabas.log.checkpoint_file import MalformedCheckpoint, encode_lines, read_lines, replace_file

NO_EPOCH = -1
NO_OFFSET = -1


class EpochEntry(NamedTuple):
    """An epoch and the first offset that its leader wrote or would have written."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """An epoch and the first offset after its last record."""

    epoch: int
    end_offset: int


UNKNOWN_END = EpochEndOffset(NO_EPOCH, NO_OFFSET)


class LeaderEpochCache:
    """Epochs and start offsets, both strictly ascending.

    A new epoch is not written to the file at once: until the log is flushed, recovery reads the
    epochs from the batches, and an epoch without batches has no effect. `needs_sync` makes the next
    flush include the file.
    """

    __slots__ = ("_entries", "_folder", "_unsaved", "latest_epoch", "needs_sync")

    def __init__(self, folder: str, entries: list[EpochEntry]) -> None:
        self._folder = folder
        self._entries = entries
        self.latest_epoch = entries[-1].epoch if entries else NO_EPOCH
        self.needs_sync = False
        self._unsaved = False

    @classmethod
    def load(cls, folder: str) -> "LeaderEpochCache":
        """Reads the file. Raises MalformedCheckpoint if it is damaged."""
        entries: list[EpochEntry] = []
        for line in read_lines(path_in(folder)):
            try:
                epoch, offset = map(int, line.split())
            except ValueError:
                raise MalformedCheckpoint(
                    f"{path_in(folder)}: {line!r} is not an epoch and an offset"
                ) from None
            entries.append(EpochEntry(epoch, offset))
        return cls(folder, entries)

    @property
    def path(self) -> str:
        return path_in(self._folder)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    def assign(self, epoch: int, offset: int) -> None:
        """The leader of `epoch` writes from `offset` on. Entries that contradict it are removed."""
        entries = self._entries
        if entries and epoch == entries[-1].epoch and offset >= entries[-1].start_offset:
            return
        while entries and (entries[-1].epoch >= epoch or entries[-1].start_offset >= offset):
            entries.pop()
        entries.append(EpochEntry(epoch, offset))
        self.latest_epoch = epoch
        self.needs_sync = self._unsaved = True

    def end_offset_for(self, epoch: int, log_end: int) -> EpochEndOffset:
        """Returns the largest epoch up to `epoch` and where it ended; UNKNOWN_END if unknown."""
        entries = self._entries
        if epoch == NO_EPOCH or not entries:
            return UNKNOWN_END
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end)
        after = bisect_right(entries, epoch, key=lambda start: start.epoch)
        if after == len(entries):
            return UNKNOWN_END
        if after == 0:
            return EpochEndOffset(epoch, entries[0].start_offset)
        return EpochEndOffset(entries[after - 1].epoch, entries[after].start_offset)

    def epoch_for_offset(self, offset: int) -> int:
        """Returns the epoch of the leader that wrote `offset`."""
        after = bisect_right(self._entries, offset, key=lambda start: start.start_offset)
        return self._entries[after - 1].epoch if after else NO_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """The log now ends at `offset`."""
        entries = self._entries
        if entries and entries[-1].start_offset >= offset:
            while entries and entries[-1].start_offset >= offset:
                entries.pop()
            self._changed()

    def truncate_from_start(self, offset: int) -> None:
        """The log now begins at `offset`: so does the epoch of that offset."""
        entries = self._entries
        before = bisect_right(entries, offset, key=lambda start: start.start_offset)
        if before > 1 or (before == 1 and entries[0].start_offset < offset):
            entries[:before] = [EpochEntry(entries[before - 1].epoch, offset)]
            self._changed()

    def clear(self) -> None:
        if self._entries:
            self._entries.clear()
            self._changed()

    def save(self) -> None:
        """Writes the file if its content has changed."""
        if self._unsaved:
            lines = (f"{epoch} {offset}" for epoch, offset in self._entries)
            replace_file(self.path, encode_lines(lines), sync=False)
            self._unsaved = False

    def _changed(self) -> None:
        """Removed entries must not come back after a crash: the file is written at once."""
        self.latest_epoch = self._entries[-1].epoch if self._entries else NO_EPOCH
        self.needs_sync = self._unsaved = True
        self.save()


def path_in(folder: str) -> str:
    return f"{folder}/leader-epoch-checkpoint"
