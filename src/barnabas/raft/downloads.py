"""A leader's snapshot on its way here: pieces that come one after the other into a `.part` file."""

import os
from pathlib import Path

from barnabas.log.checkpoints import sync_path
from barnabas.raft.snapshots import SnapshotId, read_snapshot


class SnapshotDownload:
    """The part of a snapshot that has come; it counts only after `finish`."""

    __slots__ = ("_file", "_part", "_path", "position", "snapshot")

    def __init__(self, folder: str, snapshot: SnapshotId) -> None:
        self.snapshot = snapshot
        self.position = 0
        self._path = Path(folder, snapshot.file_name)
        self._part = self._path.with_name(self._path.name + ".part")
        self._file = self._part.open("wb")

    def append(self, piece: bytes | memoryview) -> None:
        self._file.write(piece)
        self.position += len(piece)

    def finish(self) -> None:
        """Check all of it, bring it to disk and give it its name; may run in any thread.

        CorruptBatch if what came is not a whole snapshot.
        """
        self._file.flush()
        for _ in read_snapshot(self._part):
            pass
        os.fsync(self._file.fileno())
        self._file.close()
        self._part.chmod(0o400)
        self._part.rename(self._path)
        sync_path(str(self._path.parent))

    def abandon(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)
