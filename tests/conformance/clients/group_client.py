"""The operations of a client library that the group scenarios use: members and administration.

Members are polled all the time, because some libraries take part in a rebalance only in a poll.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from tests.conformance.clients.client import DEADLINE_S, BrokerError, Client, ErrorCode
from tests.wait import wait_until

POLL_S = 0.02
REBALANCING = (
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID,
)


class Protocol(StrEnum):
    """An assignor of the classic protocol, or the consumer protocol (KIP-848)."""

    RANGE = "range"
    ROUND_ROBIN = "roundrobin"
    STICKY = "sticky"
    COOPERATIVE = "cooperative-sticky"
    CONSUMER = "consumer"


class PartitionKey(NamedTuple):
    topic: str
    partition: int


class Committed(NamedTuple):
    offset: int
    metadata: str = ""


class ConsumedRecord(NamedTuple):
    """A record that a member has consumed."""

    topic_partition: PartitionKey
    offset: int
    value: bytes | None


@dataclass(slots=True, frozen=True)
class ConsumerOptions:
    """The consumer settings that a scenario varies."""

    protocol: Protocol
    instance_id: str | None = None
    auto_commit: bool = False
    reads_committed: bool = False


class Member(ABC):
    """A consumer of a group, subscribed or with assigned partitions."""

    assignment_changes: int = 0
    """How often partitions were assigned or revoked."""

    @abstractmethod
    def poll(self) -> list[ConsumedRecord]:
        """Returns the records of POLL_S. Raises the error that ends the membership, if any."""

    @abstractmethod
    def assignment(self) -> set[PartitionKey]: ...

    @abstractmethod
    def commit(self, offsets: Mapping[PartitionKey, Committed] | None = None) -> None:
        """Commits these offsets, or those of all consumed records, and waits for the response."""

    @abstractmethod
    def committed(self, topic_partition: PartitionKey) -> Committed | None: ...

    @abstractmethod
    def position(self, topic_partition: PartitionKey) -> int: ...

    @abstractmethod
    def seek(self, topic_partition: PartitionKey, offset: int) -> None: ...

    @abstractmethod
    def group_metadata(self) -> Any:
        """Returns the group metadata of the library for a producer (KIP-447)."""

    @abstractmethod
    def leave(self) -> None:
        """Closes the consumer; a static member does not leave the group."""


@dataclass(slots=True, frozen=True)
class GroupListing:
    """A listed group; `state` is None if the library does not request it."""

    state: str | None
    protocol_type: str | None = None


@dataclass(slots=True, frozen=True)
class MemberDescription:
    member_id: str
    client_id: str
    instance_id: str | None
    assignment: frozenset[PartitionKey]


@dataclass(slots=True, frozen=True)
class GroupDescription:
    state: str
    assignor: str
    members: Sequence[MemberDescription]


class GroupClient(Client):
    """A library whose consumers form groups."""

    assignors: ClassVar[Sequence[Protocol]]
    """All assignors of the library."""

    protocols: ClassVar[Sequence[Protocol]]
    """One protocol for each kind of rebalance of the library."""

    @abstractmethod
    def join(self, group: str, topics: Sequence[str], options: ConsumerOptions) -> Member:
        """Returns a new member; a topic that starts with `^` is a pattern."""

    @abstractmethod
    def assigned_consumer(
        self,
        group: str,
        topic_partitions: Sequence[PartitionKey],
        *,
        reads_committed: bool = False,
    ) -> Member:
        """Returns a consumer with assigned partitions that commits without joining."""

    @abstractmethod
    def groups(self) -> dict[str, GroupListing]: ...

    @abstractmethod
    def describe_group(self, group: str) -> GroupDescription: ...

    @abstractmethod
    def group_offsets(self, group: str) -> dict[PartitionKey, Committed]:
        """Returns all committed offsets of a group."""


class GroupAdminClient(GroupClient):
    """A library whose admin client changes offsets and deletes groups."""

    @abstractmethod
    def alter_group_offsets(
        self, group: str, offsets: Mapping[PartitionKey, Committed]
    ) -> None: ...

    @abstractmethod
    def delete_group(self, group: str) -> None: ...


class GroupOffsetAdminClient(GroupAdminClient):
    """A library with OffsetDelete, and LeaveGroup by an administrator."""

    @abstractmethod
    def delete_group_offset(self, group: str, topic_partition: PartitionKey) -> None: ...

    @abstractmethod
    def remove_static_member(self, group: str, instance_id: str) -> None: ...


def isolation_level_name(reads_committed: bool) -> str:
    """Returns the name of the isolation level, which is the same in every library."""
    return "read_committed" if reads_committed else "read_uncommitted"


@dataclass(slots=True)
class GroupMembers:
    """Members that are polled in turn, with the records that they have consumed."""

    members: list[Member]
    consumed: list[tuple[Member, ConsumedRecord]] = field(default_factory=list)

    def poll_until(self, condition: Callable[[], object], message: str) -> None:
        """Polls all members until the condition holds. Fails if a partition has two owners."""

        shared: set[PartitionKey] = set()

        def polled() -> object:
            nonlocal shared
            for member in self.members:
                self.consumed += [(member, record) for record in member.poll()]
            # Some libraries rebalance meanwhile: the old owner learns of it in its next poll.
            before, shared = shared, self._owned_twice()
            assert not before & shared, f"two members have {before & shared}"
            return condition()

        wait_until(polled, message, DEADLINE_S, poll_s=0)

    def wait_until_shared(self, topic_partitions: set[PartitionKey]) -> None:
        """Polls until every partition has one owner, and members own equally many."""

        def is_shared() -> bool:
            owned = [member.assignment() for member in self.members]
            sizes = [len(assignment) for assignment in owned]
            return (
                sum(sizes) == len(topic_partitions)
                and set().union(*owned) == topic_partitions
                and max(sizes) - min(sizes) <= 1
            )

        self.poll_until(
            is_shared, f"{len(self.members)} members share {len(topic_partitions)} partitions"
        )

    def consume_all(self, values: set[bytes]) -> None:
        """Polls until every value is consumed."""
        self.poll_until(lambda: values <= self.values(), f"{len(values)} records are consumed")

    def commit(self, topic_partitions: set[PartitionKey], offset: int) -> None:
        """Polls and commits until every partition is committed at this offset.

        A commit can fail while the group rebalances; the next owner of the partition then consumes
        its records again.
        """
        missing = set(topic_partitions)

        def is_committed() -> bool:
            for member in self.members:
                try:
                    member.commit()
                except BrokerError as exception:
                    if exception.code not in REBALANCING:
                        raise
                owned = missing & member.assignment()
                missing.difference_update(
                    topic_partition
                    for topic_partition in owned
                    if member.committed(topic_partition) == (offset, "")
                )
            return not missing

        self.poll_until(
            is_committed, f"{len(topic_partitions)} partitions are committed at {offset}"
        )

    def values(self) -> set[bytes | None]:
        return {consumed.value for _, consumed in self.consumed}

    def leave(self) -> None:
        for member in self.members:
            member.leave()

    def _owned_twice(self) -> set[PartitionKey]:
        owners = Counter(
            topic_partition for member in self.members for topic_partition in member.assignment()
        )
        return {topic_partition for topic_partition, count in owners.items() if count > 1}
