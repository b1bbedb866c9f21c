"""The `.lock` of a log directory."""

import fcntl
import os


class DirectoryInUse(OSError):  # noqa: N818 - the domain\'s word for it
    """Another broker has the directory open."""


class DirectoryLock:
    """Held until released or the process ends.

    Two locks on one file: a POSIX lock is what a JVM takes, but does not keep out a second
    broker in this process, which flock does.
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
