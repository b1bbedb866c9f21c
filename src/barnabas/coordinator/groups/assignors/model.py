"""The input and output of assignors: plain values, without anything of a coordinator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id. A topic without assigned partitions is not a key."""

Assignments = dict[str, Assignment]
"""The assignment of each member, by member id. All members are keys."""


class TopicShape(NamedTuple):
    """What an assignor needs of a topic."""

    topic_id: bytes
    name: str
    partition_count: int


@dataclass(slots=True, frozen=True)
class MemberSubscription:
    """A member with its subscription and its current target assignment."""

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    """The topics it subscribes to, by name or by regex, as far as they exist."""
    assigned: Assignment = field(default_factory=dict)
    """Its part of the current target assignment."""


@dataclass(slots=True, frozen=True)
class Subscribers:
    """The members of a group and the topics to assign."""

    members: dict[str, MemberSubscription]
    topics: dict[bytes, TopicShape]
    """Every topic that a member subscribes to."""

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe to the same topics."""
        members = iter(self.members.values())
        first = next(members, None)
        return first is None or all(member.topic_ids == first.topic_ids for member in members)


Assignor = Callable[[Subscribers], Assignments]
"""A pure, deterministic function: the same subscribers get the same assignments."""
