"""What a member wants done: the outcome of every look at the clock, an answer or the user's acts.

Members themselves send nothing, wait for nothing and call nobody back.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from barnabas.client.cluster.metadata import Metadata
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.schema import Message


@dataclass(slots=True, frozen=True)
class SendToGroupCoordinator:
    """Send this to the group's coordinator; `Member.answered` wants to know what comes of it."""

    request: Message
    timeout_ms: float
    waits_for_rebalance: bool = False  # so long that it must not hold up anything behind it


@dataclass(slots=True, frozen=True)
class Assign:
    partitions: frozenset[TopicPartitionTuple]
    incremental: bool


@dataclass(slots=True, frozen=True)
class Revoke:
    partitions: frozenset[TopicPartitionTuple]
    incremental: bool


@dataclass(slots=True, frozen=True)
class Lose:
    partitions: frozenset[TopicPartitionTuple]


@dataclass(slots=True, frozen=True)
class ReportError:
    """The user should hear of this."""

    error: KafkaError


AssignmentChange = Assign | Revoke | Lose
Action = SendToGroupCoordinator | AssignmentChange | ReportError


@dataclass(slots=True, frozen=True)
class ResolvedSubscription:
    """The topics to be in a group for."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None
    matching: frozenset[str] = frozenset()  # what the pattern matches at present

    @property
    def topics(self) -> frozenset[str]:
        return self.names | self.matching


class GroupMembership(Protocol):
    """Somebody who is, or wants to be, in a group. All times are of one clock that never jumps."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The generation or member epoch that commits carry; -1 outside of the group."""

    @property
    def has_left(self) -> bool:
        """Whether it has left, or never was in the group, and has nothing left to do."""

    @property
    def needed_topics(self) -> frozenset[str]:
        """Topics that have to be known."""

    @property
    def needs_metadata(self) -> bool:
        """Whether what is known of topics is too old to make sense of what it is told."""

    @property
    def next_deadline_ms(self) -> float:
        """When to look again, should nothing happen before."""

    def subscribe(self, sought: ResolvedSubscription, now_ms: float) -> None:
        """Be in the group, for these topics."""

    def on_poll(self, now_ms: float) -> None:
        """The user is there."""

    def on_metadata(self, metadata: Metadata) -> None:
        """This is what is known of topics by now."""

    def leave(self) -> None:
        """Give back what it has and go, if its kind of member does."""

    def on_response(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        """What came of an `Ask`: a response, or why there is none."""

    def on_assignment_changed(self) -> None:
        """The last `HandOver` is done."""

    def advance(self, now_ms: float) -> list[Action]:
        """What is to be done now. At most one hand-over is under way at any time."""


class RebalanceListener(Protocol):
    """Who partitions are given to and taken from.

    One call at a time: the next comes when the last has returned, and that is when the user's
    callback has run and the partitions are fetched, or are no longer.
    """

    async def on_partitions_assigned(
        self, partitions: Collection[TopicPartitionTuple], *, incremental: bool
    ) -> None:
        """These are its own now: besides what it has, or (not incremental) instead of that."""

    async def on_partitions_revoked(
        self, partitions: Collection[TopicPartitionTuple], *, incremental: bool
    ) -> None:
        """These have to be given back; until this returns nobody else has them."""

    async def on_partitions_lost(self, partitions: Collection[TopicPartitionTuple]) -> None:
        """These are somebody else's by now: what was consumed of them cannot be committed."""

    def on_error(self, error: KafkaError) -> None:
        """Something the user should hear of."""
