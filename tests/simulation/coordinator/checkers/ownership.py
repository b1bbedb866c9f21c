"""No partition is owned by two members of a group at once.

A member owns what it considers its own while its lease lasts (see clients/owned_partitions.py). In
the classic protocol a static member is fenced when another with its instance id joins, and learns
that with its next request. So of the members with one instance id, only the one is an owner that
the coordinator has confirmed since the last of them joined.
"""

from typing import Any

from tests.simulation.coordinator.clients.classic import ClassicMember
from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.consumer import JOINING
from tests.simulation.coordinator.clients.member import Member
from tests.simulation.coordinator.events import (
    Claimed,
    Delivered,
    Ended,
    Leased,
    Released,
    Responded,
    TopicPartition,
)
from tests.simulation.coordinator.network import SentRequest
from tests.simulation.world.events import Violation

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from barnabas.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest
from barnabas.wire.schema import Message

GroupPartition = tuple[str, TopicPartition]

MEMBERSHIP = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    ConsumerGroupHeartbeatRequest,
)


class Ownership:
    """The members that claim partitions, and until when."""

    def __init__(self) -> None:
        self._claims: dict[GroupPartition, dict[Client, None]] = {}
        self._claimed: dict[Client, dict[GroupPartition, None]] = {}
        self._lease_until_ms: dict[Client, int] = {}
        self._arrivals = 0
        self._arrived: dict[int, int] = {}
        """When a request of a static member reached the broker, by its number."""
        self._joins: dict[tuple[str, str], dict[Member, int]] = {}
        """The members that have tried to join, and when last, by group and instance id."""
        self._replaced: set[Member] = set()

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case Leased(member, until_ms):
                self._lease_until_ms[member] = until_ms
                self._check(member, now_ms)
            case Claimed(member, group_id, partitions):
                for partition in partitions:
                    group_partition = (group_id, partition)
                    self._claims.setdefault(group_partition, {})[member] = None
                    self._claimed.setdefault(member, {})[group_partition] = None
                self._check(member, now_ms)
            case Released(member, group_id, partitions):
                for partition in partitions:
                    self._drop(member, (group_id, partition))
            case Ended(client):
                for group_partition in list(self._claimed.get(client, ())):
                    self._drop(client, group_partition)
            case Delivered(sent) if _is_of_static_member(sent):
                self._arrive(sent)
            case Responded(sent) if _is_of_static_member(sent):
                self._confirm(sent)

    def other_owners(
        self, member: Client, group_partition: GroupPartition, now_ms: int
    ) -> list[Client]:
        """Returns the other members that own the partition now."""
        return [
            other
            for other in self._claims.get(group_partition, ())
            if other is not member and self._is_owner(other, now_ms)
        ]

    def owners(self, group_partition: GroupPartition, now_ms: int) -> list[Client]:
        return [
            member
            for member in self._claims.get(group_partition, ())
            if self._is_owner(member, now_ms)
        ]

    def _is_owner(self, member: Client, now_ms: int) -> bool:
        return now_ms < self._lease_until_ms.get(member, 0) and member not in self._replaced

    def _check(self, member: Client, now_ms: int) -> None:
        if not self._is_owner(member, now_ms):
            return
        for group_partition in self._claimed.get(member, ()):
            other_owners = self.other_owners(member, group_partition, now_ms)
            if other_owners:
                group_id, (topic, index) = group_partition
                raise Violation(
                    f"{topic}-{index} of {group_id} is owned by {member} and {other_owners}"
                )

    def _arrive(self, sent: SentRequest) -> None:
        """A member that joins may be accepted even if the response is lost."""
        member = sent.client
        self._arrivals += 1
        self._arrived[sent.number] = self._arrivals
        if _is_join(sent.request):
            duplicates = self._joins.setdefault((member.group_id, member.instance_id), {})
            duplicates[member] = self._arrivals
            self._replaced.update(other for other in duplicates if may_replace(member, other))

    def _confirm(self, sent: SentRequest) -> None:
        """It is a member, unless a duplicate has joined since it sent the request."""
        member = sent.client
        arrived = self._arrived.pop(sent.number)
        duplicates = self._joins.get((member.group_id, member.instance_id), {})
        if sent.response.error_code == ErrorCode.NONE and all(
            joined < arrived for other, joined in duplicates.items() if may_replace(other, member)
        ):
            self._replaced.discard(member)

    def _drop(self, member: Client, group_partition: GroupPartition) -> None:
        self._claims.get(group_partition, {}).pop(member, None)
        self._claimed.get(member, {}).pop(group_partition, None)


def _is_of_static_member(sent: SentRequest) -> bool:
    return isinstance(sent.request, MEMBERSHIP) and sent.client.instance_id is not None


def _is_join(request: Message) -> bool:
    return isinstance(request, JoinGroupRequest) or (
        isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == JOINING
    )


def may_replace(one: Member, other: Member) -> bool:
    """Returns whether one static member replaces the other when it joins.

    In the consumer protocol it does not: the second has to wait until the first has left.
    """
    return (
        one is not other
        and one.instance_id is not None
        and (one.group_id, one.instance_id) == (other.group_id, other.instance_id)
        and (isinstance(one, ClassicMember) or isinstance(other, ClassicMember))
    )
