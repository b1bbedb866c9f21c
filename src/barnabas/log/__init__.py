"""The commit log of a partition on disk: segments, indexes, recovery, retention."""

from barnabas.log.checkpointing import Checkpoint
from barnabas.log.config import LogConfig
from barnabas.log.directory import LogDirectory
from barnabas.log.epochs import EpochEnd
from barnabas.log.failures import CorruptLog, LogDirFailure
from barnabas.log.files import OpenFiles
from barnabas.log.flush import Flush
from barnabas.log.lock import DirectoryInUse
from barnabas.log.log import Appended, Log
from barnabas.log.meta_properties import MetaProperties, NotFormatted
from barnabas.log.offsets import PartitionKey
from barnabas.log.producers import BUMPING_VERSION, Producer
from barnabas.log.slices import Slice
from barnabas.log.timestamps import TimestampOffset
from barnabas.log.verification import Verification

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
