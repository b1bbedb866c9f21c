"""The interface of a group member: it takes events and time, and returns actions.

A member does no I/O, does not wait and calls nothing back: `MembershipManager` performs its
actions.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from barnabas.client.cluster.metadata import MetadataSnapshot
from barnabas.client.errors import KafkaError
from barnabas.client.values import PartitionKey
from barnabas.wire.schema import Message


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

    def on_error(self, error: KafkaError) -> None:
        """Reports an error to the user."""
