"""Writing the checkpoint files of a directory, from whatever thread has the time."""

from collections.abc import Mapping
from threading import Lock

from barnabas.log.checkpoints import replace_file
from barnabas.log.failures import LogDirFailure


class Checkpointing:
    """Writes in turn, and never what is older over what is newer.

    A recovery point that was lowered must not come back: after a crash it would vouch for
    records that are no longer there.
    """

    __slots__ = ("_begun", "_directory", "_lock", "_newest", "written")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = Lock()
        self._begun = 0
        self._newest = 0  # of those whose writing has begun
        self.written = 0
        """The number of the newest that is on disk."""

    def begin(self, files: Mapping[str, bytes]) -> "Checkpoint":
        self._begun += 1
        return Checkpoint(self, self._begun, files)

    def write(self, number: int, files: Mapping[str, bytes]) -> None:
        with self._lock:
            if number < self._newest:
                return
            self._newest = number
            try:
                for name, content in files.items():
                    replace_file(f"{self._directory}/{name}", content)
            except OSError as error:
                raise LogDirFailure(self._directory, error) from error
            self.written = number


class Checkpoint:
    """What the checkpoint files should say, as of the moment it was begun."""

    __slots__ = ("_checkpointing", "_files", "number")

    def __init__(
        self, checkpointing: Checkpointing, number: int, files: Mapping[str, bytes]
    ) -> None:
        self._checkpointing = checkpointing
        self.number = number
        self._files = files

    def write(self) -> None:
        """Blocks until they are on disk."""
        self._checkpointing.write(self.number, self._files)
