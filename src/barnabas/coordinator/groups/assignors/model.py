"""What an assignor is given, and what it gives back: values, and nothing of a coordinator."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

Assignment = dict[bytes, frozenset[int]]
"""Partitions by topic id. A topic of which nothing is assigned is not a key."""

Assignments = dict[str, Assignment]
"""What each member is to have, by member id. All members are keys."""


class TopicShape(NamedTuple):
    """A topic as far as dividing it goes."""

    topic_id: bytes
    name: str
    partition_count: int


@dataclass(slots=True, frozen=True)
class MemberSubscription:
    """A member of the group, what it wants and what it was to have up to now."""

    member_id: str
    instance_id: str | None
    topic_ids: frozenset[bytes]
    """The topics it subscribes to, by name or by regex, as far as they exist."""
    assigned: Assignment = field(default_factory=dict)
    """Its part of the last target assignment."""


@dataclass(slots=True, frozen=True)
class Subscribers:
    """A group to divide topics among."""

    members: dict[str, MemberSubscription]
    topics: dict[bytes, TopicShape]
    """Every topic that a member subscribes to."""

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members want the same topics."""
        wanted = iter(self.members.values())
        first = next(wanted, None)
        return first is None or all(each.topic_ids == first.topic_ids for each in wanted)


Assignor = Callable[[Subscribers], Assignments]
"""A pure, deterministic function: the same subscribers get the same assignments."""
