"""The commit log of a partition on disk: segments, indexes, recovery, retention."""

from barnabas.log.directory.offset_checkpoints import Checkpoint
from barnabas.log.config import LogConfig
from barnabas.log.directory.log_directory import LogDirectory
from barnabas.log.leader_epochs import EpochEndOffset
from barnabas.log.errors import CorruptLog, LogDirFailure
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.flush import Flush
from barnabas.log.directory.lock import DirectoryInUse
from barnabas.log.log import LogAppendInfo, Log
from barnabas.log.directory.meta_properties import MetaProperties, NotFormatted
from barnabas.log.directory.offset_checkpoints import PartitionKey
from barnabas.log.producers.producer_state import EPOCH_BUMP_TRANSACTION_VERSION, ProducerStateEntry
from barnabas.log.segments.log_slice import LogSlice
from barnabas.log.timestamps import TimestampOffset
from barnabas.log.producers.verification import VerificationGuard

__all__ = [
    "EPOCH_BUMP_TRANSACTION_VERSION",
    "LogAppendInfo",
    "Checkpoint",
    "CorruptLog",
    "DirectoryInUse",
    "EpochEndOffset",
    "Flush",
    "Log",
    "LogConfig",
    "LogDirFailure",
    "LogDirectory",
    "MetaProperties",
    "NotFormatted",
    "OpenFiles",
    "PartitionKey",
    "ProducerStateEntry",
    "LogSlice",
    "TimestampOffset",
    "VerificationGuard",
]
