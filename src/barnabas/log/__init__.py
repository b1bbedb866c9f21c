"""The commit log of a partition on disk: segments, indexes, recovery, retention."""

from barnabas.log.directory.offset_checkpoints import Checkpoint
from barnabas.log.config import LogConfig
from barnabas.log.directory.log_directory import LogDirectory
from barnabas.log.leader_epochs import EpochEnd
from barnabas.log.errors import CorruptLog, LogDirFailure
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.flush import Flush
from barnabas.log.directory.lock import DirectoryInUse
from barnabas.log.log import Appended, Log
from barnabas.log.directory.meta_properties import MetaProperties, NotFormatted
from barnabas.log.directory.offset_checkpoints import PartitionKey
from barnabas.log.producers.producer_state import BUMPING_VERSION, Producer
from barnabas.log.segments.log_slice import Slice
from barnabas.log.timestamps import TimestampOffset
from barnabas.log.producers.verification import Verification

__all__ = [
    "BUMPING_VERSION",
    "Appended",
    "Checkpoint",
    "CorruptLog",
    "DirectoryInUse",
    "EpochEnd",
    "Flush",
    "Log",
    "LogConfig",
    "LogDirFailure",
    "LogDirectory",
    "MetaProperties",
    "NotFormatted",
    "OpenFiles",
    "PartitionKey",
    "Producer",
    "Slice",
    "TimestampOffset",
    "Verification",
]
