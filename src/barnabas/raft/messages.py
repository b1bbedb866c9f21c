"""What the members of a quorum ask and tell each other, without its encoding.

The driver turns these into Vote, BeginQuorumEpoch, EndQuorumEpoch and Fetch, and back.
"""

from dataclasses import dataclass

from barnabas.log import EpochEndOffset
from barnabas.raft.snapshots import SnapshotId
from barnabas.raft.voters import ReplicaKey
from barnabas.wire.errors import ErrorCode


@dataclass(slots=True, frozen=True)
class RaftVoteRequest:
    """A request for a vote or, before that, for the promise of one (pre-vote, KIP-996)."""

    candidate: ReplicaKey
    epoch: int
    last_epoch: int
    last_offset: int  # the end of the candidate's log
    pre_vote: bool
    voter: ReplicaKey | None = None  # None before Vote v1


@dataclass(slots=True, frozen=True)
class RaftVoteResponse:
    """The answer, with what the voter knows of epoch and leader."""

    error: ErrorCode
    leader_id: int
    epoch: int
    granted: bool


@dataclass(slots=True, frozen=True)
class BeginEpochRequest:
    """A leader announces itself."""

    leader_id: int
    epoch: int
    voter: ReplicaKey | None = None  # None before BeginQuorumEpoch v1


@dataclass(slots=True, frozen=True)
class EndEpochRequest:
    """A leader resigns, and names those who should stand, the most advanced first."""

    leader_id: int
    epoch: int
    candidates: tuple[ReplicaKey, ...]


@dataclass(slots=True, frozen=True)
class EpochResponse:
    """The answer to `BeginEpochRequest` and `EndEpochRequest`."""

    error: ErrorCode
    leader_id: int
    epoch: int


@dataclass(slots=True, frozen=True)
class FetchOutcome:
    """What a fetch is answered with.

    An error; or where the fetcher must truncate to, or the snapshot it must fetch first; or,
    with none of them, records from the offset it asked for.
    """

    error: ErrorCode = ErrorCode.NONE
    diverging: EpochEndOffset | None = None
    snapshot: SnapshotId | None = None

    @property
    def has_records(self) -> bool:
        return self == FetchOutcome()


@dataclass(slots=True, frozen=True)
class SendVote:
    """Vote should be on its way to this voter."""

    voter: ReplicaKey
    request: RaftVoteRequest


@dataclass(slots=True, frozen=True)
class SendBeginEpoch:
    """BeginQuorumEpoch should be on its way to this voter."""

    voter: ReplicaKey
    request: BeginEpochRequest


@dataclass(slots=True, frozen=True)
class SendEndEpoch:
    """EndQuorumEpoch should be on its way to this voter."""

    voter: ReplicaKey
    request: EndEpochRequest


OutgoingRequest = SendVote | SendBeginEpoch | SendEndEpoch
