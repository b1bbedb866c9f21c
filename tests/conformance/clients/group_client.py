"""What the group scenarios ask of a client library: to be a member, and to look after groups.

A member is polled all the time, as an application does: some libraries take part in a rebalance
only then.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from tests.conformance.clients.client import DEADLINE_S, BrokerError, Client, Code
from tests.wait import wait_until

POLL_S = 0.02
REBALANCING = (Code.REBALANCE_IN_PROGRESS, Code.ILLEGAL_GENERATION, Code.UNKNOWN_MEMBER_ID)


class Protocol(StrEnum):
    """How a group shares its partitions: an assignor of the classic protocol, or KIP-848."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE = "cooperative-sticky"
    CONSUMER = "consumer"


class Place(NamedTuple):
    topic: str
    partition: int


class Committed(NamedTuple):
    offset: int
    metadata: str = ""


class Taken(NamedTuple):
    """A record that a member was given."""

    place: Place
    offset: int
    value: bytes | None


@dataclass(slots=True, frozen=True)
class Joining:
    """The consumer settings that a scenario varies."""

    protocol: Protocol
    instance_id: str | None = None
    commits_by_itself: bool = False
    reads_committed: bool = False


class Member(ABC):
    """A consumer of a group, subscribed or assigned its partitions by hand."""

    changes: int = 0
    """How often it was given or had to give up partitions."""

    @abstractmethod
    def poll(self) -> list[Taken]:
        """What has arrived within POLL_S; the error that ends the membership, if any."""

    @abstractmethod
    def assignment(self) -> set[Place]: ...

    @abstractmethod
    def commit(self, offsets: Mapping[Place, Committed] | None = None) -> None:
        """Commit these, or everything taken so far, and wait for the answer."""

    @abstractmethod
    def committed(self, place: Place) -> Committed | None: ...

    @abstractmethod
    def position(self, place: Place) -> int: ...

    @abstractmethod
    def seek(self, place: Place, offset: int) -> None: ...

    @abstractmethod
    def identity(self) -> Any:
        """Who it is in the group by now, as the library hands it to a producer (KIP-447)."""

    @abstractmethod
    def leave(self) -> None:
        """Close the consumer; a static member only goes away."""


@dataclass(slots=True, frozen=True)
class Listed:
    """A group in a list; `state` is None where the library does not ask for it."""

    state: str | None
    protocol_type: str | None = None


@dataclass(slots=True, frozen=True)
class MemberDescription:
    member_id: str
    client_id: str
    instance_id: str | None
    assignment: frozenset[Place]


@dataclass(slots=True, frozen=True)
class GroupDescription:
    state: str
    assignor: str
    members: Sequence[MemberDescription]


class GroupClient(Client):
    """A library whose consumers form groups."""

    assignors: ClassVar[Sequence[Protocol]]
    """All that it has."""

    protocols: ClassVar[Sequence[Protocol]]
    """One for each kind of rebalance that it knows."""

    @abstractmethod
    def join(self, group: str, topics: Sequence[str], joining: Joining) -> Member:
        """A new member; one topic that starts with `^` is a pattern."""

    @abstractmethod
    def consumer_of(
        self, group: str, places: Sequence[Place], *, reads_committed: bool = False
    ) -> Member:
        """A consumer that commits for the group and is not in it."""

    @abstractmethod
    def groups(self) -> dict[str, Listed]: ...

    @abstractmethod
    def describe_group(self, group: str) -> GroupDescription: ...

    @abstractmethod
    def group_offsets(self, group: str) -> dict[Place, Committed]:
        """All that is committed for a group."""


class ChangesGroups(GroupClient):
    """A library whose admin client changes offsets and deletes groups."""

    @abstractmethod
    def alter_group_offsets(self, group: str, offsets: Mapping[Place, Committed]) -> None: ...

    @abstractmethod
    def delete_group(self, group: str) -> None: ...


class DeletesGroupOffsets(ChangesGroups):
    """A library that knows OffsetDelete, and LeaveGroup by an administrator."""

    @abstractmethod
    def delete_group_offset(self, group: str, place: Place) -> None: ...

    @abstractmethod
    def remove_static_member(self, group: str, instance_id: str) -> None: ...


def isolation(reads_committed: bool) -> str:
    """The name that every library has for it."""
    return "read_committed" if reads_committed else "read_uncommitted"


@dataclass(slots=True)
class Crew:
    """Members that are polled in turn, and what each of them took."""

    members: list[Member]
    taken: list[tuple[Member, Taken]] = field(default_factory=list)

    def work_until(self, condition: Callable[[], object], what: str) -> None:
        """Poll everyone in turn until the condition holds; no partition may have two owners."""

        shared: set[Place] = set()

        def polled() -> object:
            nonlocal shared
            for member in self.members:
                self.taken += [(member, each) for each in member.poll()]
            # Some libraries rebalance while we look: who passed it on learns it at its next poll.
            before, shared = shared, self._owned_twice()
            assert not before & shared, f"two members have {before & shared}"
            return condition()

        wait_until(polled, what, DEADLINE_S, poll_s=0)

    def share(self, places: set[Place]) -> None:
        """Work until every place has one owner, and nobody has much more than another."""

        def is_shared() -> bool:
            owned = [member.assignment() for member in self.members]
            sizes = [len(each) for each in owned]
            return (
                sum(sizes) == len(places)
                and set().union(*owned) == places
                and max(sizes) - min(sizes) <= 1
            )

        self.work_until(is_shared, f"{len(self.members)} members share {len(places)} partitions")

    def take(self, values: set[bytes]) -> None:
        """Work until every value was taken by somebody."""
        self.work_until(lambda: values <= self.values(), f"{len(values)} records are taken")

    def commit(self, places: set[Place], offset: int) -> None:
        """Work and commit until every place is committed at this offset.

        A commit may be refused while the group rebalances; whoever owns the place then takes its
        records again.
        """
        missing = set(places)

        def is_committed() -> bool:
            for member in self.members:
                try:
                    member.commit()
                except BrokerError as refused:
                    if refused.code not in REBALANCING:
                        raise
                owned = missing & member.assignment()
                missing.difference_update(
                    place for place in owned if member.committed(place) == (offset, "")
                )
            return not missing

        self.work_until(is_committed, f"{len(places)} partitions are committed at {offset}")

    def values(self) -> set[bytes | None]:
        return {taken.value for _, taken in self.taken}

    def leave(self) -> None:
        for member in self.members:
            member.leave()

    def _owned_twice(self) -> set[Place]:
        owners = Counter(place for member in self.members for place in member.assignment())
        return {place for place, count in owners.items() if count > 1}
