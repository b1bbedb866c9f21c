"""Who the voters were from which offset on, where the log itself says so (KIP-853).

A replica acts on the newest record of voters in its log, committed or not. What is truncated
takes its voters with it; a snapshot tells those that counted at its end.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Generic, TypeVar

from barnabas.raft.voters import VoterSet
from barnabas.wire.messages.raft_records import KRaftVersionRecord, VotersRecord
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.record import Record

OFFSET_BEFORE_LOG = -1
"""The offset of voters that formatting left in the snapshot at 0: the log never had them."""

_T = TypeVar("_T")


class VoterHistory:
    """The voters and the `kraft.version` of one log; `static` are those of the settings."""

    __slots__ = ("_static", "_versions", "_voters")

    def __init__(self, static: VoterSet | None) -> None:
        self._static = static or VoterSet(())
        self._voters: _Timeline[VoterSet] = _Timeline()
        self._versions: _Timeline[int] = _Timeline()

    @property
    def voters(self) -> VoterSet:
        """The newest; those of the settings while the log has none."""
        newest = self._voters.newest
        return self._static if newest is None else newest

    @property
    def offset(self) -> int | None:
        """Where the newest voters stand; None while they are those of the settings."""
        return self._voters.newest_offset

    @property
    def kraft_version(self) -> int:
        """1 where voters are kept in the log, 0 where they are a setting."""
        return self._versions.newest or 0

    def voters_below(self, end_offset: int) -> VoterSet | None:
        """The voters that a snapshot of everything below `end_offset` tells; None for version 0."""
        if not self._versions.below(end_offset):
            return None
        return self._voters.below(end_offset)

    def update(self, records: Iterable[Record], offset: int | None = None) -> bool:
        """Note what control records say of voters; whether they say anything.

        `offset` stands for that of the records where they come from a snapshot.
        """
        found = False
        for record in records:
            if record.key is None or record.value is None:
                continue
            at = record.offset if offset is None else offset
            kind = read_control_type(record.key)
            if kind is ControlType.KRAFT_VOTERS:
                voters = VoterSet.from_record(VotersRecord.read(record.value, 0)[0])
                self._voters.add(at, voters)
                found = True
            elif kind is ControlType.KRAFT_VERSION:
                version = KRaftVersionRecord.read(record.value, 0)[0].k_raft_version
                self._versions.add(at, version)
                found = True
        return found

    def truncate(self, end_offset: int) -> bool:
        """The log now ends at `end_offset`; whether voters went with what was cut."""
        voters_went = self._voters.truncate(end_offset)
        return self._versions.truncate(end_offset) or voters_went

    def forget_below(self, start_offset: int) -> None:
        """Nobody will ask what was so before `start_offset`."""
        self._voters.forget_below(start_offset)
        self._versions.forget_below(start_offset)

    def clear(self) -> None:
        self._voters.truncate(OFFSET_BEFORE_LOG)
        self._versions.truncate(OFFSET_BEFORE_LOG)


class _Timeline(Generic[_T]):
    """Values by the offset they hold from, ascending."""

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
        """What held for the last record before `end_offset`."""
        number = bisect_left(self._offsets, end_offset)
        return self._values[number - 1] if number else None

    def add(self, offset: int, value: _T) -> None:
        self.truncate(offset)
        self._offsets.append(offset)
        self._values.append(value)

    def truncate(self, end_offset: int) -> bool:
        number = bisect_left(self._offsets, end_offset)
        went = number < len(self._offsets)
        del self._offsets[number:]
        del self._values[number:]
        return went

    def forget_below(self, start_offset: int) -> None:
        """All but the last that stands before `start_offset`, which still holds there."""
        number = bisect_right(self._offsets, start_offset)
        del self._offsets[: max(number - 1, 0)]
        del self._values[: max(number - 1, 0)]
