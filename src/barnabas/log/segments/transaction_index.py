"""The `.txnindex` beside a segment: which transactions were aborted in it.

One entry an abort marker, in the order of the markers; the file exists once there is one.

     0  version             int16   0
     2  producer id         int64
    10  first offset        int64   of the transaction
    18  last offset         int64   of its abort marker
    26  last stable offset  int64   once the marker was appended
"""

import struct
from typing import NamedTuple

from barnabas.log.segments.log_files import TRANSACTION_INDEX
from barnabas.log.segments.index import IndexFile

_VERSION = 0
_LAST_OFFSET = 3  # the number of the field


class AbortedTransaction(NamedTuple):
    """What a reader of committed records must skip, and from where to where."""

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
        """Those with records in [start, end), and whether markers further on cannot matter."""
        found = []
        for number in range(self._count_up_to(start - 1, _LAST_OFFSET), self.count):
            aborted = AbortedTransaction._make(self.entry(number)[1:])
            if aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                return found, True
        return found, False

    def truncate(self, offset: int) -> None:
        """Forgets the markers from `offset` on."""
        self._truncate_to_count(self._count_up_to(offset - 1, _LAST_OFFSET))
