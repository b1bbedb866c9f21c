"""Making a log durable in a thread, while the event loop goes on appending to it."""

import os
from contextlib import suppress
from dataclasses import dataclass

from barnabas.log.files import OpenFile


@dataclass(slots=True, frozen=True)
class Flush:
    """What has to reach the disk so that everything below `upto` is safe there.

    `sync` may run in any thread: it uses nothing of the log but these descriptors and names.
    """

    upto: int
    cuts: int  # how often the log had been truncated when the flush began
    logs: tuple[OpenFile, ...]
    beside: tuple[str, ...]  # indexes of rolled segments, snapshots, epochs, the folder

    def sync(self) -> None:
        """Blocks until the disk has it all."""
        for log in self.logs:
            os.fdatasync(log.fd)
        for path in self.beside:
            # A file that was deleted meanwhile needs no saving.
            with suppress(FileNotFoundError):
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(fd)
                finally:
                    os.close(fd)
