"""The temporary files that an interrupted deletion or compaction left in a partition's folder.

The cleaner writes new segments as `.cleaned`, renames them to `.swap` when all are complete, and
then puts them in place of the original segments. So a `.cleaned` file is unfinished and is removed.
A `.swap` file is finished and is put in place, unless others of the same run are still `.cleaned`:
then all originals exist, and it is removed too.
"""

import logging
import os
from contextlib import suppress

from barnabas.log.errors import DamagedBatch
from barnabas.log.segments import file_records
from barnabas.log.segments.log_files import (
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    LogFiles,
    list_log_files,
    parse_file_name,
    segment_path,
)

_logger = logging.getLogger(__name__)


def remove_temporary_files(folder: str, files: LogFiles) -> LogFiles:
    """Removes temporary files and finishes swaps; returns the files as they are then."""
    for name in (*files.deleted, *files.cleaned):
        os.unlink(f"{folder}/{name}")
    if files.swaps:
        _finish_swaps(folder, files)
        files = list_log_files(folder)
    for base_offset, suffix in files.indexes:
        if base_offset not in files.logs:
            path = segment_path(folder, base_offset, suffix)
            _logger.warning("%s: removed an index without a log file", path)
            os.unlink(path)
    return files


def _finish_swaps(folder: str, files: LogFiles) -> None:
    unfinished_from = min(map(_offset, files.cleaned), default=None)
    finished = []
    for name in files.swaps:
        if unfinished_from is not None and _offset(name) >= unfinished_from:
            os.unlink(f"{folder}/{name}")
        else:
            finished.append(name)
    for name in finished:
        if name.endswith(LOG + SWAP):
            first, end = _offset(name), _end_offset(f"{folder}/{name}", _offset(name))
            for base_offset in files.logs:
                if first <= base_offset < end:
                    delete_segment_files(folder, base_offset)
    for name in finished:
        _logger.info("%s/%s: put in place, the cleaner had finished it", folder, name)
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
    """Returns the offset after the last whole batch of a log file."""
    end_offset = base_offset
    fd = os.open(path, os.O_RDONLY)
    try:
        with suppress(DamagedBatch):
            for _, header in file_records.read_headers(fd, 0, os.fstat(fd).st_size):
                end_offset = header.next_offset
    finally:
        os.close(fd)
    return end_offset
