"""The voters of a quorum, their endpoints, and what a majority of them is."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from barnabas.wire.messages.raft_records import Endpoint as EndpointEntry
from barnabas.wire.messages.raft_records import KRaftVersionFeature, VotersRecord
from barnabas.wire.messages.raft_records import Voter as VoterEntry
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
