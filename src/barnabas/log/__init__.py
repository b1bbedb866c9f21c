"""The commit log of a partition on disk: segments, indexes, recovery, retention.

Begin with `log.py`. The hot path is `Log.append_as_leader` and `Log.read`.
"""

from barnabas.log._append import ProducerStateEntry
from barnabas.log.config import LogConfig
from barnabas.log.directory.directory_files import DirectoryInUse, MetaProperties, NotFormatted
from barnabas.log.directory.log_directory import LogDirectory
from barnabas.log.directory.offset_checkpoints import Checkpoint, PartitionKey
from barnabas.log.errors import CorruptLog, LogDirFailure
from barnabas.log.flush import Flush
from barnabas.log.leader_epochs import EpochEndOffset
from barnabas.log.log import Log, LogAppendInfo
from barnabas.log.producers.producer_state import EPOCH_BUMP_TRANSACTION_VERSION
from barnabas.log.producers.verification import VerificationGuard
from barnabas.log.segments.log_slice import LogSlice
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.page_cache import ColdRead, PositionalRead, pread_cached
from barnabas.log.timestamps import TimestampOffset, TimestampSearch

__all__ = [
    "EPOCH_BUMP_TRANSACTION_VERSION",
    "Checkpoint",
    "ColdRead",
    "CorruptLog",
    "DirectoryInUse",
    "EpochEndOffset",
    "Flush",
    "Log",
    "LogAppendInfo",
    "LogConfig",
    "LogDirFailure",
    "LogDirectory",
    "LogSlice",
    "MetaProperties",
    "NotFormatted",
    "OpenFiles",
    "PartitionKey",
    "PositionalRead",
    "ProducerStateEntry",
    "TimestampOffset",
    "TimestampSearch",
    "VerificationGuard",
    "pread_cached",
]
