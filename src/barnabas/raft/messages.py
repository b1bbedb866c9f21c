"""The messages of the consensus, without their encoding.

The codecs convert them to Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch, and back.
"""

from dataclasses import dataclass

from barnabas.log import EpochEndOffset
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode


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
