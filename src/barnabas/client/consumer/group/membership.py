"""The interface of a group member, and what the members of both protocols share.

A member takes events and time, and returns actions, which `MembershipManager` performs. It does no
I/O, does not wait and calls nothing back.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.client.cluster.metadata import MetadataSnapshot
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import PartitionKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.schema import Message

COORDINATOR_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_RETRIABLE = COORDINATOR_MOVED | {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
}


@dataclass(slots=True, frozen=True)
class SendToGroupCoordinator:
    """Sends a request to the group coordinator, and its outcome to `on_response`."""

    request: Message
    timeout_ms: float
    waits_for_rebalance: bool = False  # so long that it needs a connection of its own


@dataclass(slots=True, frozen=True)
class Assign:
    partitions: frozenset[PartitionKey]
    incremental: bool


@dataclass(slots=True, frozen=True)
class Revoke:
    partitions: frozenset[PartitionKey]
    incremental: bool


@dataclass(slots=True, frozen=True)
class Lose:
    partitions: frozenset[PartitionKey]


@dataclass(slots=True, frozen=True)
class ReportError:
    """Reports an error to the user."""

    error: KafkaError


AssignmentChange = Assign | Revoke | Lose
Action = SendToGroupCoordinator | AssignmentChange | ReportError


@dataclass(slots=True, frozen=True)
class ResolvedSubscription:
    """The subscribed topics; `names` are explicit, `matching` match the pattern now."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None
    matching: frozenset[str] = frozenset()

    @property
    def topics(self) -> frozenset[str]:
        return self.names | self.matching


class GroupMembership(Protocol):
    """A member of a group, or one that is about to join. All times are of one monotonic clock."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The generation or member epoch that commits carry; -1 outside of the group."""

    @property
    def has_left(self) -> bool:
        """Whether it is not in the group, and has no action left."""

    @property
    def needed_topics(self) -> frozenset[str]:
        """The topics whose metadata it needs."""

    @property
    def needs_metadata(self) -> bool:
        """Whether its assignment has topic ids that the metadata does not have."""

    @property
    def next_deadline_ms(self) -> float:
        """When to call `advance` again if no event comes before."""

    def subscribe(self, subscription: ResolvedSubscription, now_ms: float) -> None:
        """Joins, or stays in, the group for these topics."""

    def on_poll(self, now_ms: float) -> None:
        """The user has polled."""

    def on_metadata(self, metadata: MetadataSnapshot) -> None:
        """The metadata of topics has changed."""

    def leave(self) -> None:
        """Revokes all partitions and leaves; a static member stays in the group."""

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        """A request has a response, or an error if there is none."""

    def on_assignment_changed(self) -> None:
        """The last `AssignmentChange` is complete."""

    def advance(self, now_ms: float) -> list[Action]:
        """Returns the actions due now. At most one assignment change is in progress."""


class RebalanceListener(Protocol):
    """The consumer whose assignment the group changes.

    Calls come one at a time: a call returns when the user's callback has run and the partitions
    are fetched, or are no longer fetched.
    """

    async def on_partitions_assigned(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        """Partitions were assigned: besides the others, or (not incremental) instead of them."""

    async def on_partitions_revoked(
        self, partitions: Collection[PartitionKey], *, incremental: bool
    ) -> None:
        """Partitions are revoked; no other member has them until this returns."""

    async def on_partitions_lost(self, partitions: Collection[PartitionKey]) -> None:
        """Other members may own the partitions by now: their offsets cannot be committed."""

    def on_error(self, error: KafkaError, topic: str | None = None) -> None:
        """Reports an error to the user: of a topic, or of the group."""


class OwnedPartitions:
    """The partitions that the user has, and the planned changes, which happen one at a time."""

    def __init__(self) -> None:
        self.partitions: frozenset[PartitionKey] = frozenset()
        self._in_progress: AssignmentChange | None = None
        self._planned: deque[AssignmentChange] = deque()
        self._are_lost = False

    @property
    def is_changing(self) -> bool:
        """Whether a change is planned or in progress."""
        return self._in_progress is not None or bool(self._planned) or self._are_lost

    def plan(self, change: AssignmentChange) -> None:
        self._planned.append(change)

    def lose_all(self) -> None:
        """Other members own all partitions: losing them is the next change, instead of others."""
        self._planned.clear()
        self._are_lost = True

    def next_change(self) -> AssignmentChange | None:
        """Starts the next change, once the last is complete, and returns it."""
        if self._in_progress is not None:
            return None
        if self._are_lost:
            self._are_lost = False
            self._in_progress = Lose(self.partitions) if self.partitions else None
        elif self._planned:
            self._in_progress = self._planned.popleft()
        return self._in_progress

    def complete_change(self) -> None:
        match self._in_progress:
            case Assign(partitions, incremental=True):
                self.partitions |= partitions
            case Assign(partitions):
                self.partitions = partitions
            case Revoke(partitions) | Lose(partitions):
                self.partitions -= partitions
            case None:
                raise AssertionError("no change is in progress")
        self._in_progress = None


class PollTimer:
    """Whether the user polls at least every max.poll.interval.ms."""

    def __init__(self, max_interval_ms: float) -> None:
        self._max_interval_ms = max_interval_ms
        self.is_expired = False
        self.deadline_ms = 0.0

    def reset(self, now_ms: float) -> None:
        self.is_expired = False
        self.deadline_ms = now_ms + self._max_interval_ms

    def expire(self, now_ms: float) -> bool:
        """Expires the timer if it is due; returns True only when it expires."""
        if self.is_expired or now_ms < self.deadline_ms:
            return False
        self.is_expired = True
        return True


def error_of(outcome: Message | KafkaError) -> KafkaError | None:
    """Returns the error of a request's outcome: it names the request that failed."""
    if isinstance(outcome, KafkaError):
        return outcome
    response: Any = outcome
    if not response.error_code:
        return None
    error = broker_error(response.error_code, getattr(response, "error_message", None))
    name = type(response).__name__.removesuffix("Response")
    return KafkaError(error.code(), f"{name} failed: {error.str()}", retriable=error.retriable())


def is_retriable(error: KafkaError) -> bool:
    """Whether a retry is all there is to do: no response, or not from the coordinator.

    Errors without a response are of the network, which are reported to `error_cb`.
    """
    return error.code() < ErrorCode.UNKNOWN_SERVER_ERROR or error.code() in _RETRIABLE


def max_poll_exceeded_error(interval_ms: int) -> KafkaError:
    return KafkaError(
        KafkaError._MAX_POLL_EXCEEDED,
        f"Application maximum poll interval ({interval_ms}ms) exceeded: its partitions go to other "
        "members until it polls again (raise max.poll.interval.ms if messages take that long)",
    )


def inconsistent_protocol_error(violation: Exception) -> KafkaError:
    """Returns the error for metadata or an assignment of another member that is unreadable."""
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"the metadata of another member is unreadable: {violation}",
    )
