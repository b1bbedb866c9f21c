"""The voters of a quorum, their endpoints, and what a majority of them is.

The voters may be in the log (KIP-853): `VoterHistory` has those at every offset. A replica acts on
the newest voters record in its log, committed or not. A truncation removes the voters of the
records that it removes; a snapshot has the voters at its end offset.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from barnabas.wire.messages.raft_records import Endpoint as EndpointEntry
from barnabas.wire.messages.raft_records import (
    KRaftVersionFeature,
    KRaftVersionRecord,
    VotersRecord,
)
from barnabas.wire.messages.raft_records import Voter as VoterEntry
from barnabas.wire.records.control import ControlType, read_control_type
from barnabas.wire.records.record import Record
from barnabas.wire.uuid import ZERO

_E = TypeVar("_E")

MIN_KRAFT_VERSION = 0
MAX_KRAFT_VERSION = 1


class QuorumError(Exception):
    """The quorum cannot be formed; the message says what to change."""


@dataclass(slots=True, frozen=True)
class VoterEndpoint:
    """A controller listener of a voter."""

    name: str
    host: str
    port: int


@dataclass(slots=True, frozen=True, order=True)
class ReplicaKey:
    """A replica of the metadata log: a node and its directory, `ZERO` if it is not known."""

    node_id: int
    directory_id: bytes = ZERO

    def matches(self, other: "ReplicaKey") -> bool:
        """Whether `other` is this replica; any directory matches an unknown one (KIP-853)."""
        return self.node_id == other.node_id and self.directory_id in (ZERO, other.directory_id)


@dataclass(slots=True, frozen=True)
class VoterNode:
    """A voter. Its directory id distinguishes it from the same node with another disk."""

    node_id: int
    directory_id: bytes
    endpoints: tuple[VoterEndpoint, ...]

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)


class VoterSet:
    """A set of voters, by node id."""

    __slots__ = ("_by_id", "_keys")

    def __init__(self, voters: Iterable[VoterNode]) -> None:
        self._by_id: Mapping[int, VoterNode] = {voter.node_id: voter for voter in voters}
        self._keys = {node_id: self._by_id[node_id].key for node_id in sorted(self._by_id)}

    @classmethod
    def from_record(cls, record: VotersRecord) -> "VoterSet":
        return cls(
            VoterNode(
                entry.voter_id,
                entry.voter_directory_id,
                tuple(VoterEndpoint(e.name, e.host, e.port) for e in entry.endpoints),
            )
            for entry in record.voters
        )

    def to_record(self) -> VotersRecord:
        return VotersRecord(
            voters=[
                VoterEntry(
                    voter_id=voter.node_id,
                    voter_directory_id=voter.directory_id,
                    endpoints=wire_endpoints(EndpointEntry, voter.endpoints),
                    k_raft_version_feature=KRaftVersionFeature(
                        min_supported_version=MIN_KRAFT_VERSION,
                        max_supported_version=MAX_KRAFT_VERSION,
                    ),
                )
                for voter in self
            ]
        )

    def __iter__(self) -> Iterator[VoterNode]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VoterSet) and self._by_id == other._by_id

    def get(self, node_id: int) -> VoterNode | None:
        return self._by_id.get(node_id)

    def ids(self) -> list[int]:
        return list(self._keys)

    def with_voter(self, voter: VoterNode) -> "VoterSet":
        """Returns this set with one voter added or replaced."""
        return VoterSet({**self._by_id, voter.node_id: voter}.values())

    def without(self, node_id: int) -> "VoterSet":
        return VoterSet(voter for voter in self if voter.node_id != node_id)

    def replicas(self) -> list[ReplicaKey]:
        return list(self._keys.values())

    def includes(self, replica: ReplicaKey) -> bool:
        """Whether the replica votes; any directory matches a voter without a known one."""
        key = self._keys.get(replica.node_id)
        return key is not None and key.matches(replica)

    def is_majority(self, node_ids: Iterable[int]) -> bool:
        return len(self._by_id.keys() & set(node_ids)) > len(self._by_id) // 2

    def majority_offset(self, end_offsets: Mapping[int, int]) -> int:
        """Returns the largest offset that the logs of a majority have reached."""
        reached = sorted((end_offsets.get(node_id, 0) for node_id in self._by_id), reverse=True)
        return reached[len(reached) // 2]


def wire_endpoints(message: Callable[..., _E], endpoints: Iterable[VoterEndpoint]) -> list[_E]:
    """Returns the endpoints as `message` entries; every API and record has its own type."""
    return [message(name=e.name, host=e.host, port=e.port) for e in endpoints]


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
