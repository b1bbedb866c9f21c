"""What can go wrong with a log on disk."""

from barnabas.wire.errors import ErrorCode, KafkaError


class LogDirFailure(OSError):  # noqa: N818 - the domain\'s word for it
    """The disk under a log directory refused; its partitions cannot be served from there."""

    def __init__(self, directory: str, cause: OSError) -> None:
        super().__init__(cause.errno, f"log directory {directory}: {cause.strerror or cause}")
        self.directory = directory


class CorruptLog(KafkaError):  # noqa: N818 - the domain\'s word for it
    """Bytes that were safely on disk are no longer what was written.

    They are never served and never cut away: that is for the operator to decide.
    """

    def __init__(self, path: str, position: int, reason: str) -> None:
        super().__init__(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{path} is damaged at byte {position}: {reason}. Restore the file, or move the "
            "partition's folder away to have it copied again from another replica.",
        )


class DamagedBatch(Exception):  # noqa: N818 - a finding, turned into a CorruptLog
    """No whole batch stands where one was expected."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"byte {position}: {reason}")
        self.position = position
        self.reason = reason


class IndexMismatch(Exception):  # noqa: N818 - a finding too, turned into a rebuild
    """An index entry points at something else than the batch it names."""


class TornWrite(OSError):  # noqa: N818 - the domain\'s word for it
    """A write went through in part, and what it left could not be taken back."""
