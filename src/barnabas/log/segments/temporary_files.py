"""What an interrupted deletion or cleaning left in a partition's folder.

Cleaning writes new segments as `.cleaned`, renames them to `.swap` when all are complete, and
then puts them in place of the ones they were made from. So a `.cleaned` file is unfinished and
goes; a `.swap` file is finished and takes its place, unless others of its batch were still
`.cleaned`, which means that the originals are all there.
"""

import logging
import os
from contextlib import suppress

from barnabas.log.segments import file_records
from barnabas.log.errors import DamagedBatch
from barnabas.log.segments.log_files import (
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    LogFiles,
    parse_file_name,
    segment_path,
    list_log_files,
)

_logger = logging.getLogger(__name__)


def remove_temporary_files(folder: str, found: LogFiles) -> LogFiles:
    """Removes or finishes what is half done; the inventory as it is then."""
    for name in (*found.deleted, *found.cleaned):
        os.unlink(f"{folder}/{name}")
    if found.swaps:
        _finish_swaps(folder, found)
        found = list_log_files(folder)
    for base_offset, suffix in found.indexes:
        if base_offset not in found.logs:
            path = segment_path(folder, base_offset, suffix)
            _logger.warning("%s: an index without its log, removed", path)
            os.unlink(path)
    return found


def _finish_swaps(folder: str, found: LogFiles) -> None:
    unfinished_from = min(map(_offset, found.cleaned), default=None)
    finished = []
    for name in found.swaps:
        if unfinished_from is not None and _offset(name) >= unfinished_from:
            os.unlink(f"{folder}/{name}")
        else:
            finished.append(name)
    for name in finished:
        if name.endswith(LOG + SWAP):
            first, end = _offset(name), _end_offset(f"{folder}/{name}", _offset(name))
            for base_offset in found.logs:
                if first <= base_offset < end:
                    delete_segment_files(folder, base_offset)
    for name in finished:
        _logger.info("%s/%s: the cleaner had finished it, put in place", folder, name)
        os.replace(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP)}")


def delete_segment_files(folder: str, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        with suppress(FileNotFoundError):
            os.unlink(segment_path(folder, base_offset, suffix))


def _offset(name: str) -> int:
    offset, _ = parse_file_name(name)
    assert offset is not None, name
    return offset


def _end_offset(path: str, base_offset: int) -> int:
    """The offset after the last whole batch of a log file."""
    end_offset = base_offset
    fd = os.open(path, os.O_RDONLY)
    try:
        with suppress(DamagedBatch):
            for _, header in file_records.read_headers(fd, 0, os.fstat(fd).st_size):
                end_offset = header.next_offset
    finally:
        os.close(fd)
    return end_offset
