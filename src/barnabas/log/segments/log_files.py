"""The files of a partition's folder, by name."""

import logging
import os
from dataclasses import dataclass, field

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"

SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"  # renamed away, to be removed after a while
CLEANED = ".cleaned"  # the cleaner was writing it
SWAP = ".swap"  # the cleaner had finished it and was putting it in place

_DIGITS = 20
_KNOWN = frozenset(
    ("leader-epoch-checkpoint", "partition.metadata", "quorum-state", "leader-epoch-checkpoint.tmp")
)

_logger = logging.getLogger(__name__)


def segment_path(folder: str, base_offset: int, suffix: str) -> str:
    return f"{folder}/{base_offset:0{_DIGITS}d}{suffix}"


@dataclass(slots=True)
class LogFiles:
    """What one look into the folder found."""

    logs: dict[int, int] = field(default_factory=dict)  # base offset -> bytes in the file
    indexes: list[tuple[int, str]] = field(default_factory=list)  # base offset, suffix
    snapshots: list[int] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    swaps: list[str] = field(default_factory=list)


def list_log_files(folder: str) -> LogFiles:
    """Sorts the folder's files by kind; a file of no known kind is left alone."""
    found = LogFiles()
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            offset, suffix = parse_file_name(name)
            if offset is None:
                if name not in _KNOWN:
                    _logger.warning("%s: not a file of a log, left alone", entry.path)
            elif suffix == LOG:
                found.logs[offset] = entry.stat().st_size
            elif suffix == SNAPSHOT:
                found.snapshots.append(offset)
            elif suffix in SEGMENT_SUFFIXES:
                found.indexes.append((offset, suffix))
            elif suffix.endswith(DELETED):
                found.deleted.append(name)
            elif suffix.endswith(CLEANED):
                found.cleaned.append(name)
            elif suffix.endswith(SWAP):
                found.swaps.append(name)
            elif not name.endswith((".checkpoint", ".checkpoint.part")):
                _logger.warning("%s: not a file of a log, left alone", entry.path)
    found.snapshots.sort()
    return found


def parse_file_name(name: str) -> tuple[int | None, str]:
    """The offset a file is named for and all that follows it."""
    digits, suffix = name[:_DIGITS], name[_DIGITS:]
    if len(digits) == _DIGITS and digits.isdecimal():
        return int(digits), suffix
    return None, name
