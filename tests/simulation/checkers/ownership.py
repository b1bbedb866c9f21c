"""No partition is owned by two members of a group at once.

Owned is what a member believes to own, for as long as its lease allows it to (see
clients/holdings.py). By the classic protocol a static member is fenced by a double that joins,
and does not hear of it before it asks again: of several with one instance id only the one counts
that the coordinator has let in last.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.simulation.clients.classic import ClassicMember
from tests.simulation.clients.client import Client
from tests.simulation.clients.member import Member
from tests.simulation.events import (
    Answered,
    Claimed,
    Ended,
    Leased,
    Released,
    TopicPartition,
    Violation,
)
from tests.simulation.network import Exchange

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest

GroupPartition = tuple[str, TopicPartition]


@dataclass(slots=True)
class Instance:
    """All who have joined under one instance id."""

    members: dict[Member, None] = field(default_factory=dict)
    last: Member | None = None
    let_in_ms: int = 0


class Ownership:
    """Who claims what, and until when."""

    def __init__(self) -> None:
        self._claims: dict[GroupPartition, dict[Client, None]] = {}
        self._claimed: dict[Client, dict[GroupPartition, None]] = {}
        self._lease_until_ms: dict[Client, int] = {}
        self._instances: dict[tuple[str, str], Instance] = {}
        """By group and instance id."""
        self._replaced: set[Member] = set()

    def see(self, event: Any, now_ms: int) -> None:
        match event:
            case Leased(member, until_ms):
                self._lease_until_ms[member] = until_ms
                self._check(member, now_ms)
            case Claimed(member, group_id, partitions):
                for partition in partitions:
                    place = (group_id, partition)
                    self._claims.setdefault(place, {})[member] = None
                    self._claimed.setdefault(member, {})[place] = None
                self._check(member, now_ms)
            case Released(member, group_id, partitions):
                for partition in partitions:
                    self._drop(member, (group_id, partition))
            case Ended(client):
                for place in list(self._claimed.get(client, ())):
                    self._drop(client, place)
            case Answered(exchange) if _is_let_in(exchange):
                self._let_in(exchange)

    def rivals(self, member: Client, place: GroupPartition, now_ms: int) -> list[Client]:
        """Others who own it right now."""
        return [
            other
            for other in self._claims.get(place, ())
            if other is not member and self._counts(other, now_ms)
        ]

    def owners(self, place: GroupPartition, now_ms: int) -> list[Client]:
        return [each for each in self._claims.get(place, ()) if self._counts(each, now_ms)]

    def _counts(self, member: Client, now_ms: int) -> bool:
        return now_ms < self._lease_until_ms.get(member, 0) and member not in self._replaced

    def _check(self, member: Client, now_ms: int) -> None:
        if not self._counts(member, now_ms):
            return
        for place in self._claimed.get(member, ()):
            rivals = self.rivals(member, place, now_ms)
            if rivals:
                group_id, (topic, index) = place
                raise Violation(f"{topic}-{index} of {group_id} is owned by {member} and {rivals}")

    def _let_in(self, exchange: Exchange) -> None:
        member = exchange.client
        instance = self._instances.setdefault((member.group_id, member.instance_id), Instance())
        instance.members[member] = None
        if exchange.delivered_ms >= instance.let_in_ms:
            instance.let_in_ms = exchange.delivered_ms
            instance.last = member
            self._replaced.discard(member)
        self._replaced.update(each for each in instance.members if may_replace(instance.last, each))

    def _drop(self, member: Client, place: GroupPartition) -> None:
        self._claims.get(place, {}).pop(member, None)
        self._claimed.get(member, {}).pop(place, None)


def _is_let_in(exchange: Exchange) -> bool:
    """Whether a static member has joined."""
    match exchange.request:
        case JoinGroupRequest(group_instance_id=str()):
            return exchange.response.error_code == ErrorCode.NONE
        case ConsumerGroupHeartbeatRequest(instance_id=str(), member_epoch=0):
            return exchange.response.error_code == ErrorCode.NONE
    return False


def may_replace(one: Member, other: Member) -> bool:
    """Whether the coordinator takes one for the other. It does not between members of the consumer
    protocol, where the second has to wait until the first has left."""
    return (
        one is not other
        and one.instance_id is not None
        and (one.group_id, one.instance_id) == (other.group_id, other.instance_id)
        and (isinstance(one, ClassicMember) or isinstance(other, ClassicMember))
    )
