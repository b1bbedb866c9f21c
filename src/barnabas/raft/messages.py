"""The messages of the consensus without their encoding, and the effects that its driver performs.

The codecs convert them to Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch, and back.
"""

from dataclasses import dataclass

from barnabas.log import EpochEndOffset
from barnabas.raft.roles import NO_NODE, Role
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.uuid import ZERO


@dataclass(slots=True, frozen=True)
class RaftVoteRequest:
    """A request for a vote, or for a pre-vote: whether the voter would grant it (KIP-996)."""

    candidate: ReplicaKey
    epoch: int
    last_epoch: int
    last_offset: int  # the end of the candidate's log
    pre_vote: bool
    voter: ReplicaKey | None = None  # None before Vote v1


@dataclass(slots=True, frozen=True)
class RaftVoteResponse:
    """The response, with the epoch and leader that the voter knows."""

    error: ErrorCode
    leader_id: int
    epoch: int
    granted: bool


@dataclass(slots=True, frozen=True)
class BeginEpochRequest:
    """The announcement of a new leader."""

    leader_id: int
    epoch: int
    voter: ReplicaKey | None = None  # None before BeginQuorumEpoch v1


@dataclass(slots=True, frozen=True)
class EndEpochRequest:
    """The resignation of a leader, with its preferred successors, the most advanced first."""

    leader_id: int
    epoch: int
    candidates: tuple[ReplicaKey, ...]


@dataclass(slots=True, frozen=True)
class EpochResponse:
    """The response to `BeginEpochRequest` and `EndEpochRequest`."""

    error: ErrorCode
    leader_id: int
    epoch: int


@dataclass(slots=True, frozen=True)
class FetchOutcome:
    """What the response to a fetch contains.

    An error; or the offset to truncate to; or the snapshot to fetch first; or, with none of
    them, records from the fetch offset.
    """

    error: ErrorCode = ErrorCode.NONE
    diverging: EpochEndOffset | None = None
    snapshot: SnapshotId | None = None

    @property
    def has_records(self) -> bool:
        return self == FetchOutcome()


@dataclass(slots=True, frozen=True)
class SendVote:
    """Vote should be in flight to this voter."""

    voter: ReplicaKey
    request: RaftVoteRequest


@dataclass(slots=True, frozen=True)
class SendBeginEpoch:
    """BeginQuorumEpoch should be in flight to this voter."""

    voter: ReplicaKey
    request: BeginEpochRequest


@dataclass(slots=True, frozen=True)
class SendEndEpoch:
    """EndQuorumEpoch should be in flight to this voter."""

    voter: ReplicaKey
    request: EndEpochRequest


OutgoingRequest = SendVote | SendBeginEpoch | SendEndEpoch


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
class Persist:
    """Write this to disk before anything else is done or sent."""

    state: QuorumState


@dataclass(slots=True, frozen=True)
class AppendLeaderChange:
    """Append this as the first record of the epoch that this node leads now."""

    epoch: int
    leader_id: int
    voters: list[int]
    granting_voters: list[int]


@dataclass(slots=True, frozen=True)
class RoleChanged:
    role: Role


@dataclass(slots=True, frozen=True)
class HighWatermark:
    """Every record below this offset is committed."""

    offset: int


Effect = Persist | AppendLeaderChange | RoleChanged | HighWatermark
