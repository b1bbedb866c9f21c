"""No partition is owned by two members of a group at once.

Owned is what a member believes to own, for as long as its lease allows it to (see
clients/holdings.py). By the classic protocol a static member is fenced by a double that joins,
and does not hear of it before it asks again: of several with one instance id only the one counts
that the coordinator has answered as a member since the last of them came to join.
"""

from typing import Any

from tests.simulation.clients.classic import ClassicMember
from tests.simulation.clients.client import Client
from tests.simulation.clients.consumer import JOINING
from tests.simulation.clients.member import Member
from tests.simulation.events import (
    Answered,
    Claimed,
    Delivered,
    Ended,
    Leased,
    Released,
    TopicPartition,
    Violation,
)
from tests.simulation.network import Exchange

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.heartbeat import HeartbeatRequest
from barnabas.wire.messages.join_group import JoinGroupRequest
from barnabas.wire.messages.sync_group import SyncGroupRequest
from barnabas.wire.schema import Message

GroupPartition = tuple[str, TopicPartition]

MEMBERSHIP = (
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    ConsumerGroupHeartbeatRequest,
)


class Ownership:
    """Who claims what, and until when."""

    def __init__(self) -> None:
        self._claims: dict[GroupPartition, dict[Client, None]] = {}
        self._claimed: dict[Client, dict[GroupPartition, None]] = {}
        self._lease_until_ms: dict[Client, int] = {}
        self._arrivals = 0
        self._arrived: dict[int, int] = {}
        """By number of a static member's request when it reached the node."""
        self._joins: dict[tuple[str, str], dict[Member, int]] = {}
        """By group and instance id who has tried to join, and when they did last."""
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
            case Delivered(exchange) if _is_of_static_member(exchange):
                self._arrive(exchange)
            case Answered(exchange) if _is_of_static_member(exchange):
                self._confirm(exchange)

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

    def _arrive(self, exchange: Exchange) -> None:
        """Whoever joins may be let in, whether or not anybody hears of it."""
        member = exchange.client
        self._arrivals += 1
        self._arrived[exchange.number] = self._arrivals
        if _is_join(exchange.request):
            doubles = self._joins.setdefault((member.group_id, member.instance_id), {})
            doubles[member] = self._arrivals
            self._replaced.update(each for each in doubles if may_replace(member, each))

    def _confirm(self, exchange: Exchange) -> None:
        """It is a member, unless a double has come since it asked."""
        member = exchange.client
        arrived = self._arrived.pop(exchange.number)
        doubles = self._joins.get((member.group_id, member.instance_id), {})
        if exchange.response.error_code == ErrorCode.NONE and all(
            joined < arrived for each, joined in doubles.items() if may_replace(each, member)
        ):
            self._replaced.discard(member)

    def _drop(self, member: Client, place: GroupPartition) -> None:
        self._claims.get(place, {}).pop(member, None)
        self._claimed.get(member, {}).pop(place, None)


def _is_of_static_member(exchange: Exchange) -> bool:
    return isinstance(exchange.request, MEMBERSHIP) and exchange.client.instance_id is not None


def _is_join(request: Message) -> bool:
    return isinstance(request, JoinGroupRequest) or (
        isinstance(request, ConsumerGroupHeartbeatRequest) and request.member_epoch == JOINING
    )


def may_replace(one: Member, other: Member) -> bool:
    """Whether the coordinator takes one for the other. It does not between members of the consumer
    protocol, where the second has to wait until the first has left."""
    return (
        one is not other
        and one.instance_id is not None
        and (one.group_id, one.instance_id) == (other.group_id, other.instance_id)
        and (isinstance(one, ClassicMember) or isinstance(other, ClassicMember))
    )
