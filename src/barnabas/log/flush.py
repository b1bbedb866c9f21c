"""Making a log durable in a thread, while the event loop goes on appending to it."""

import os
from contextlib import suppress
from dataclasses import dataclass

from barnabas.log.checkpoint_file import sync_path
from barnabas.log.errors import LogDirFailure
from barnabas.log.segments.open_files import OpenFile


@dataclass(slots=True, frozen=True)
class Flush:
    """What has to reach the disk so that everything below `upto` is safe there.

    `sync` may run in any thread: it uses nothing of the log but these descriptors and names.
    """

    directory: str
    upto: int
    cuts: int  # how often the log had been truncated when the flush began
    logs: tuple[OpenFile, ...]
    beside: tuple[str, ...]  # indexes of rolled segments, snapshots, epochs, the folder

    def sync(self) -> None:
        """Blocks until the disk has it all.

        After a failure nothing can be said of the files any more, however a second try goes:
        the kernel has given up on the pages. The directory has failed.
        """
        try:
            for log in self.logs:
                os.fdatasync(log.fd)
            for path in self.beside:
                with suppress(FileNotFoundError):  # what was deleted meanwhile needs no saving
                    sync_path(path)
        except OSError as error:
            raise LogDirFailure(self.directory, error) from error
