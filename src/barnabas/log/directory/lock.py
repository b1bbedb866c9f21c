"""The `.lock` of a log directory."""

import fcntl
import os


class DirectoryInUse(OSError):  # noqa: N818 - the domain's word for it
    """Another broker has the directory open."""


class DirectoryLock:
    """Held until it is released or the process ends.

    There are two locks on the file: the POSIX lock keeps out a broker in a JVM, and flock keeps out
    a second broker in this process.
    """

    __slots__ = ("_fd",)

    def __init__(self, directory: str) -> None:
        path = f"{directory}/.lock"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._fd)
            raise DirectoryInUse(
                error.errno, f"{path} is held: another broker uses {directory}"
            ) from None

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
