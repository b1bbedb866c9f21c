"""The records of a plain OffsetCommit: most commits, which have no metadata and no retention time.

Consumers commit many partitions at a time. So their offsets stay packed, from the request to the
log and to the state.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, overload

from barnabas.coordinator.groups.offsets import _plain_commits
from barnabas.coordinator.groups.offsets.record import (
    NO_EXPIRY,
    VERSION,
    CommittedOffset,
    OffsetKey,
    write_names,
)
from barnabas.coordinator.records import CoordinatorRecord, PackedRecords
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import OffsetCommitRequestPartition
from barnabas.wire.records.batch import NO_PRODUCER_ID

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

_ENTRY = Struct(">iqiq")  # partition, offset, leader epoch, commit timestamp


class _PackedTopic(NamedTuple):
    name: str
    topic_id: bytes
    entries: bytes


class PlainCommit(PackedRecords):
    """The offsets that a group commits, packed by topic."""

    __slots__ = ("_count", "_timestamp", "_topics", "group_id")

    def __init__(self, group_id: str, timestamp: int) -> None:
        self.group_id = group_id
        self._timestamp = timestamp
        self._topics: list[_PackedTopic] = []
        self._count = 0

    def add(
        self,
        topic: str,
        topic_id: bytes,
        existing: Container[int],
        partitions: Sequence[OffsetCommitRequestPartition],
    ) -> list[ErrorCode] | None:
        """Adds the partitions that exist. Returns the error code of each partition.

        Returns None if one of them has metadata: the commit is not plain.
        """
        packed = _plain_commits.pack(partitions, existing, self._timestamp)
        if packed is None:
            return None
        codes, entries = packed
        if entries:
            self.add_packed(topic, topic_id, entries)
        return codes

    def add_packed(self, topic: str, topic_id: bytes, entries: bytes) -> None:
        """Adds partitions that exist, packed as in `_plain_commits`. Each has the timestamp of the
        commit."""
        self._topics.append(_PackedTopic(topic, topic_id, entries))
        self._count += len(entries) // _ENTRY.size

    def encode(self, reserved_bytes: int) -> bytearray:
        group_id = self.group_id
        return _plain_commits.encode(
            [
                (write_names(group_id, name), topic_id, entries)
                for name, topic_id, entries in self._topics
            ],
            reserved_bytes,
        )

    def replay(self, state: GroupCoordinatorState) -> None:
        if state.offsets.pending.by_key:  # these offsets supersede some that are pending
            for record in self:
                state.replay(record, NO_PRODUCER_ID)
            return
        state.ensure_group(self.group_id, self._timestamp)
        for name, topic_id, entries in self._topics:
            state.offsets.put_packed(self.group_id, name, topic_id, entries)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[CoordinatorRecord]:
        for name, topic_id, entries in self._topics:
            for partition, offset, epoch, timestamp in _ENTRY.iter_unpack(entries):
                yield CoordinatorRecord(
                    OffsetKey(self.group_id, name, partition),
                    CommittedOffset(offset, epoch, "", timestamp, NO_EXPIRY, topic_id),
                    VERSION,
                )

    @overload
    def __getitem__(self, index: int) -> CoordinatorRecord: ...

    @overload
    def __getitem__(self, index: slice) -> list[CoordinatorRecord]: ...

    def __getitem__(self, index: int | slice) -> CoordinatorRecord | list[CoordinatorRecord]:
        return list(self)[index]
