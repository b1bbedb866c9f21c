"""The transaction index of a segment (`.txnindex`): the transactions that were aborted in it.

There is one entry for each abort marker, in the order of the markers. The file exists once there is
one.

     0  version             int16   0
     2  producer id         int64
    10  first offset        int64   of the transaction
    18  last offset         int64   of its abort marker
    26  last stable offset  int64   once the marker was appended
"""

import struct
from typing import NamedTuple

from barnabas.log.segments.index import IndexFile
from barnabas.log.segments.log_files import TRANSACTION_INDEX

_VERSION = 0
_LAST_OFFSET = 3  # the number of the field


class AbortedTransaction(NamedTuple):
    """The range of offsets that a reader of committed records skips for a producer."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """The aborted transactions of one segment, by the offset of their marker."""

    __slots__ = ()
    ENTRY = struct.Struct(">hqqqq")
    KEY = _LAST_OFFSET
    SUFFIX = TRANSACTION_INDEX

    def append(self, aborted: AbortedTransaction) -> None:
        self._add(_VERSION, *aborted)
        self.flush()

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Returns the transactions with records in [start, end), and whether these are all."""
        overlapping = []
        for number in range(self._count_up_to(start - 1, _LAST_OFFSET), self.count):
            aborted = AbortedTransaction._make(self.entry(number)[1:])
            if aborted.first_offset < end:
                overlapping.append(aborted)
            if aborted.last_stable_offset >= end:
                return overlapping, True
        return overlapping, False

    def truncate(self, offset: int) -> None:
        """Removes the markers from `offset` on."""
        self._truncate_to_count(self._count_up_to(offset - 1, _LAST_OFFSET))
