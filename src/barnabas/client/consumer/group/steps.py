"""What a member wants done: the outcome of every look at the clock, an answer or the user's acts.

Members themselves send nothing, wait for nothing and call nobody back.
"""

from dataclasses import dataclass
from typing import Protocol

from barnabas.client.cluster.metadata import Metadata
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.schema import Message


@dataclass(slots=True, frozen=True)
class Ask:
    """Send this to the group's coordinator; `Member.answered` wants to know what comes of it."""

    request: Message
    timeout_ms: float
    waits_for_others: bool = False  # so long that it must not hold up anything behind it


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
class Tell:
    """The user should hear of this."""

    error: KafkaError


HandOver = Assign | Revoke | Lose
Step = Ask | HandOver | Tell


@dataclass(slots=True, frozen=True)
class Sought:
    """The topics to be in a group for."""

    names: frozenset[str] = frozenset()
    pattern: str | None = None
    matching: frozenset[str] = frozenset()  # what the pattern matches at present

    @property
    def topics(self) -> frozenset[str]:
        return self.names | self.matching


class Member(Protocol):
    """Somebody who is, or wants to be, in a group. All times are of one clock that never jumps."""

    @property
    def member_id(self) -> str: ...

    @property
    def epoch(self) -> int:
        """The generation or member epoch that commits carry; -1 outside of the group."""

    @property
    def is_out(self) -> bool:
        """Whether it has left, or never was in the group, and has nothing left to do."""

    @property
    def wanted_topics(self) -> frozenset[str]:
        """Topics that have to be known."""

    @property
    def is_puzzled(self) -> bool:
        """Whether what is known of topics is too old to make sense of what it is told."""

    @property
    def wakes_at_ms(self) -> float:
        """When to look again, should nothing happen before."""

    def subscribe(self, sought: Sought, now_ms: float) -> None:
        """Be in the group, for these topics."""

    def polled(self, now_ms: float) -> None:
        """The user is there."""

    def heard(self, metadata: Metadata) -> None:
        """This is what is known of topics by now."""

    def leave(self) -> None:
        """Give back what it has and go, if its kind of member does."""

    def answered(self, request: Message, outcome: Message | KafkaError, now_ms: float) -> None:
        """What came of an `Ask`: a response, or why there is none."""

    def handed_over(self) -> None:
        """The last `HandOver` is done."""

    def advance(self, now_ms: float) -> list[Step]:
        """What is to be done now. At most one hand-over is under way at any time."""
