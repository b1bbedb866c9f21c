"""Lines in bytes, found without a loop over them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

READ_BYTES = 1 << 20

_CARRIAGE_RETURN = 13
_LINE_FEED = 10


@dataclass(slots=True, frozen=True)
class Lines:
    """Lines without their endings."""

    values: pa.StringArray
    ends: np.ndarray[Any, np.dtype[np.int64]]
    """For each line the index of the byte after its ending."""

    def limit(self, count: int) -> Lines:
        return Lines(self.values[:count], self.ends[:count])


def split_lines(data: bytes) -> Lines | None:
    """Returns the lines of the data that have ended; None if there is none.

    A carriage return at the end of the data is not an ending yet: a line feed may follow.
    """
    array = np.frombuffer(data, np.uint8)
    is_ending = array == _LINE_FEED
    if _CARRIAGE_RETURN not in data:
        last = np.flatnonzero(is_ending)
    else:
        is_return = array == _CARRIAGE_RETURN
        # Of \r\n, the line feed is the last byte.
        is_last = is_ending | is_return
        is_last[:-1] &= ~(is_return[:-1] & is_ending[1:])
        is_last[-1] &= not is_return[-1]
        is_ending = is_ending | is_return
        last = np.flatnonzero(is_last)
    if not len(last):
        return None
    end = int(last[-1]) + 1
    is_text = ~is_ending[:end]
    offsets = np.zeros(len(last) + 1, np.int32)
    offsets[1:] = np.cumsum(is_text, dtype=np.int32)[last]
    text = array[:end][is_text]
    values = pa.StringArray.from_buffers(len(last), pa.py_buffer(offsets), pa.py_buffer(text))
    return Lines(_with_valid_text(values), last + 1)


def _with_valid_text(values: pa.StringArray) -> pa.StringArray:
    """Returns the lines with U+FFFD for what is not UTF-8, as Java decodes it."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = values.view(pa.binary()).to_pylist()
        return pa.array([line.decode(errors="replace") for line in raw], pa.string())
    return values


class LineSearch:
    """Finds out whether there is a whole line, and reads a line that grows only once."""

    def __init__(self) -> None:
        self._searched = (0, 0, 0)
        """The inode, the position, and up to which byte no line has ended."""

    def has_line(self, file: BinaryIO, start: int) -> bool:
        inode = os.fstat(file.fileno()).st_ino
        searched_to = start
        if self._searched[:2] == (inode, start):
            searched_to = self._searched[2]
        file.seek(searched_to)
        while block := file.read(READ_BYTES):
            # A carriage return at the end may be half of a line ending.
            if b"\n" in block or b"\r" in block[:-1]:
                return True
            searched_to += len(block) - block.endswith(b"\r")
            if block == b"\r":
                break
            file.seek(searched_to)
        self._searched = (inode, start, searched_to)
        return False
