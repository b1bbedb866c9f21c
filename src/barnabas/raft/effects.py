"""The effects of a step of the consensus, which its driver performs."""

from dataclasses import dataclass

from barnabas.raft.roles import NO_NODE, Role
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.uuid import ZERO


@dataclass(slots=True, frozen=True)
class QuorumState:
    """What a node must have on disk: its epoch, the leader of it, and the vote in it."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    voted_directory_id: bytes = ZERO

    @classmethod
    def of_vote(cls, epoch: int, leader_id: int, voted_key: ReplicaKey | None) -> "QuorumState":
        if voted_key is None:
            return cls(epoch, leader_id)
        return cls(epoch, leader_id, voted_key.node_id, voted_key.directory_id)

    @property
    def voted_key(self) -> ReplicaKey | None:
        if self.voted_id == NO_NODE:
            return None
        return ReplicaKey(self.voted_id, self.voted_directory_id)


@dataclass(slots=True, frozen=True)
class LeaderChange:
    """The first record of an epoch."""

    leader_id: int
    voters: list[int]
    granting_voters: list[int]


@dataclass(slots=True, frozen=True)
class Persist:
    """Write this to disk before anything else is done or sent."""

    state: QuorumState


@dataclass(slots=True, frozen=True)
class AppendLeaderChange:
    """Append this as the first record of the epoch that this node leads now."""

    change: LeaderChange
    epoch: int


@dataclass(slots=True, frozen=True)
class RoleChanged:
    role: Role


@dataclass(slots=True, frozen=True)
class HighWatermark:
    """Every record below this offset is committed."""

    offset: int


Effect = Persist | AppendLeaderChange | RoleChanged | HighWatermark
