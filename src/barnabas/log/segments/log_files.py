"""The names of the files in a partition's folder."""

import logging
import os
from dataclasses import dataclass, field

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

INDEX_SUFFIXES = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
SEGMENT_SUFFIXES = (LOG, *INDEX_SUFFIXES)

DELETED = ".deleted"  # renamed, to be removed after file.delete.delay.ms
CLEANED = ".cleaned"  # the cleaner had not finished it
SWAP = ".swap"  # the cleaner had finished it, but not yet put it in place

_DIGITS = 20
_OTHER_FILES = frozenset(
    ("leader-epoch-checkpoint", "partition.metadata", "quorum-state", "leader-epoch-checkpoint.tmp")
)

_logger = logging.getLogger(__name__)


def segment_path(folder: str, base_offset: int, suffix: str) -> str:
    return f"{folder}/{base_offset:0{_DIGITS}d}{suffix}"


def file_name(base_offset: int, suffix: str) -> str:
    """Returns the name of a segment's file within its folder."""
    return f"{base_offset:0{_DIGITS}d}{suffix}"


@dataclass(slots=True)
class LogFiles:
    """The files of a folder by kind."""

    logs: dict[int, int] = field(default_factory=dict)  # base offset -> bytes in the file
    indexes: list[tuple[int, str]] = field(default_factory=list)  # base offset, suffix
    snapshots: list[int] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    swaps: list[str] = field(default_factory=list)


def list_log_files(folder: str) -> LogFiles:
    """Lists the files of a folder by kind; files of unknown kinds are ignored with a warning."""
    files = LogFiles()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            offset, suffix = parse_file_name(name)
            if offset is None:
                if name not in _OTHER_FILES:
                    _logger.warning("%s: not a file of a log, ignored", entry.path)
            elif suffix == LOG:
                files.logs[offset] = entry.stat().st_size
            elif suffix == SNAPSHOT:
                files.snapshots.append(offset)
            elif suffix in SEGMENT_SUFFIXES:
                files.indexes.append((offset, suffix))
            elif suffix.endswith(DELETED):
                files.deleted.append(name)
            elif suffix.endswith(CLEANED):
                files.cleaned.append(name)
            elif suffix.endswith(SWAP):
                files.swaps.append(name)
            elif not name.endswith((".checkpoint", ".checkpoint.part")):
                _logger.warning("%s: not a file of a log, ignored", entry.path)
    files.snapshots.sort()
    return files


def parse_file_name(name: str) -> tuple[int | None, str]:
    """Returns the offset in a file's name and everything after it."""
    digits, suffix = name[:_DIGITS], name[_DIGITS:]
    if len(digits) == _DIGITS and digits.isdecimal():
        return int(digits), suffix
    return None, name
