"""The voters at every offset of a log that holds them (KIP-853).

A replica acts on the newest voters record in its log, committed or not. A truncation removes the
voters of the records that it removes; a snapshot has the voters at its end offset.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Generic, TypeVar

from barnabas.raft.voters import VoterSet
from barnabas.wire.messages.raft_records import KRaftVersionRecord, VotersRecord
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.record import Record

OFFSET_BEFORE_LOG = -1
"""The offset of voters that formatting wrote to the snapshot at 0: they are not in the log."""

_T = TypeVar("_T")


class VoterHistory:
    """The voters and the `kraft.version` of one log; `static` are the voters of the settings."""

    __slots__ = ("_static", "_versions", "_voters")

    def __init__(self, static: VoterSet | None) -> None:
        self._static = static or VoterSet(())
        self._voters: _Timeline[VoterSet] = _Timeline()
        self._versions: _Timeline[int] = _Timeline()

    @property
    def voters(self) -> VoterSet:
        """The newest voters; those of the settings while the log has none."""
        newest = self._voters.newest
        return self._static if newest is None else newest

    @property
    def offset(self) -> int | None:
        """The offset of the newest voters; None while they are those of the settings."""
        return self._voters.newest_offset

    @property
    def kraft_version(self) -> int:
        """1 if the voters are in the log, 0 if they are a setting."""
        return self._versions.newest or 0

    def voters_below(self, end_offset: int) -> VoterSet | None:
        """Returns the voters for a snapshot that ends at `end_offset`; None for version 0."""
        if not self._versions.below(end_offset):
            return None
        return self._voters.below(end_offset)

    def update(self, records: Iterable[Record], offset: int | None = None) -> bool:
        """Adds the voters in control records. Returns whether there were any.

        `offset` replaces that of the records if they come from a snapshot.
        """
        changed = False
        for record in records:
            if record.key is None or record.value is None:
                continue
            at = record.offset if offset is None else offset
            kind = read_control_type(record.key)
            if kind is ControlType.KRAFT_VOTERS:
                voters = VoterSet.from_record(VotersRecord.read(record.value, 0)[0])
                self._voters.add(at, voters)
                changed = True
            elif kind is ControlType.KRAFT_VERSION:
                version = KRaftVersionRecord.read(record.value, 0)[0].k_raft_version
                self._versions.add(at, version)
                changed = True
        return changed

    def truncate(self, end_offset: int) -> bool:
        """Removes voters from `end_offset` on. Returns whether there were any."""
        voters_changed = self._voters.truncate(end_offset)
        return self._versions.truncate(end_offset) or voters_changed

    def remove_below(self, start_offset: int) -> None:
        """Removes entries that only apply before `start_offset`."""
        self._voters.remove_below(start_offset)
        self._versions.remove_below(start_offset)

    def clear(self) -> None:
        self._voters.truncate(OFFSET_BEFORE_LOG)
        self._versions.truncate(OFFSET_BEFORE_LOG)


class _Timeline(Generic[_T]):
    """Values by the offset from which they apply, ascending."""

    __slots__ = ("_offsets", "_values")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._values: list[_T] = []

    @property
    def newest(self) -> _T | None:
        return self._values[-1] if self._values else None

    @property
    def newest_offset(self) -> int | None:
        return self._offsets[-1] if self._offsets else None

    def below(self, end_offset: int) -> _T | None:
        """Returns the value that applies to the last record before `end_offset`."""
        number = bisect_left(self._offsets, end_offset)
        return self._values[number - 1] if number else None

    def add(self, offset: int, value: _T) -> None:
        self.truncate(offset)
        self._offsets.append(offset)
        self._values.append(value)

    def truncate(self, end_offset: int) -> bool:
        number = bisect_left(self._offsets, end_offset)
        removed = number < len(self._offsets)
        del self._offsets[number:]
        del self._values[number:]
        return removed

    def remove_below(self, start_offset: int) -> None:
        """Removes all entries before `start_offset` except the last, which still applies."""
        number = bisect_right(self._offsets, start_offset)
        del self._offsets[: max(number - 1, 0)]
        del self._values[: max(number - 1, 0)]
