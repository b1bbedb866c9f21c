"""The errors of a log on disk."""

import errno
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.log.directory.log_directory import LogDirectory

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""The numbers of errors that are no failure of the disk: it has no space left."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class LogDirFailure(OSError):  # noqa: N818 - Kafka's word for it
    """The disk under a log directory failed; its partitions cannot be served from there."""

    def __init__(self, directory: str, cause: OSError) -> None:
        super().__init__(cause.errno, f"log directory {directory}: {cause.strerror or cause}")
        self.directory = directory


class CorruptLog(KafkaError):  # noqa: N818 - the domain's word for it
    """Bytes that were safely on disk are no longer what was written.

    They are never served and never truncated: that is for the operator to decide.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} is damaged at byte {position}: {reason}. Restore the file, or move the "
            "partition's folder away to have it copied again from another replica.",
        )


class DamagedBatch(Exception):  # noqa: N818 - internal, turned into a CorruptLog
    """There is no whole batch where one was expected."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class IndexMismatch(Exception):  # noqa: N818 - internal, causes a rebuild
    """An index entry does not point at the batch it names."""


class TornWrite(OSError):  # noqa: N818 - the domain's word for it
    """A write succeeded in part, and its bytes could not be removed again."""


def log_dir_failure(directory: "LogDirectory", error: OSError) -> LogDirFailure:
    """Returns the failure that an error of the disk means for a log directory.

    The log is as it was before, except after a torn write: the directory has failed then.
    """
    if isinstance(error, LogDirFailure):
        return error
    failure = LogDirFailure(directory.path, error)
    if isinstance(error, TornWrite):
        directory.failed = failure
    return failure


class _InDirectory(Protocol):
    directory: "LogDirectory"


_S = TypeVar("_S", bound=_InDirectory)


def raises_log_dir_failure(
    method: Callable[Concatenate[_S, _P], _R],
) -> Callable[Concatenate[_S, _P], _R]:
    """Makes a method raise LogDirFailure for the OSError of its disk."""

    @wraps(method)
    def guarded(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return method(self, *args, **kwargs)
        except OSError as error:
            raise log_dir_failure(self.directory, error) from error

    return guarded
