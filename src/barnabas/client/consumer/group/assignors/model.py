"""Members and topics as assignors see them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.values import PartitionKey

NO_GENERATION = -1

GroupAssignment = dict[str, list[PartitionKey]]
"""Member id -> its partitions, in order. Every member has an entry."""


@dataclass(slots=True, frozen=True)
class SubscribedMember:
    """A member with its subscription, as the leader receives it."""

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    owned: frozenset[PartitionKey] = frozenset()
    generation: int = NO_GENERATION  # of its owned partitions
    rack: str | None = None
    user_data: bytes | None = None  # of its assignor, for the leader's

    @property
    def order(self) -> tuple[bool, str]:
        """The sort key. Static members come first, by instance id: a restart moves nothing."""
        return (self.instance_id is None, self.instance_id or self.member_id)


@dataclass(slots=True, frozen=True)
class ClusterTopics:
    """The existing topics: their partition counts, and the racks of their replicas."""

    partitions: Mapping[str, int]
    racks: Mapping[PartitionKey, frozenset[str]] = field(default_factory=dict)

    def of(self, topic: str) -> list[PartitionKey]:
        return [(topic, index) for index in range(self.partitions.get(topic, 0))]


class PartitionAssignor(Protocol):
    """Assigns partitions to members."""

    @property
    def name(self) -> str:
        """Its name in the protocol."""

    @property
    def is_cooperative(self) -> bool:
        """Whether members keep their partitions while they join (KIP-429)."""

    def user_data(self, owned: Collection[PartitionKey], generation: int) -> bytes | None:
        """Returns what a member sends to the leader's assignor about its last assignment."""

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment: ...


def subscribers_by_topic(
    members: Iterable[SubscribedMember], topics: ClusterTopics
) -> dict[str, list[SubscribedMember]]:
    """Returns the subscribed members of existing topics, in order; the topics by name."""
    interested: defaultdict[str, list[SubscribedMember]] = defaultdict(list)
    for member in sorted(members, key=lambda member: member.order):
        for topic in member.topics:
            if topics.partitions.get(topic):
                interested[topic].append(member)
    return {topic: interested[topic] for topic in sorted(interested)}
