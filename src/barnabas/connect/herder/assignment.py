"""Which instance runs which connector.

Every instance joins the group with what it runs (`MemberMetadata`). The leader assigns: an instance
keeps what it runs as long as the numbers differ by one at most, so that only what must move moves.

A connector that moves is assigned to nobody first. Its owner ends it and joins again, now without
it. Then it is assigned to its new owner. So two live instances never run the same connector.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

PROTOCOL_TYPE = "connect"
PROTOCOL_NAME = "barnabas-connectors"
"""Workers in Java have other protocols, so the coordinator keeps both out of one group."""
_VERSION = 1


class UnreadableAssignmentError(Exception):
    """A member of the group is not one of ours, or of another version."""


@dataclass(slots=True, frozen=True)
class MemberMetadata:
    """What an instance tells the leader."""

    url: str
    """Of its REST API."""
    config_offset: int
    """How far it has read the config topic."""
    running: frozenset[str] = frozenset()
    """The connectors that are assigned to it."""
    stopping: frozenset[str] = frozenset()
    """The connectors that it still ends, and that nobody else may start yet."""

    @classmethod
    def decode(cls, content: bytes) -> "MemberMetadata":
        document = _parse(content)
        return cls(
            document["url"],
            document["config_offset"],
            frozenset(document["running"]),
            frozenset(document["stopping"]),
        )

    def encode(self) -> bytes:
        return _dump(
            {
                "url": self.url,
                "config_offset": self.config_offset,
                "running": sorted(self.running),
                "stopping": sorted(self.stopping),
            }
        )


@dataclass(slots=True, frozen=True)
class GroupAssignment:
    """What all members receive."""

    leader_url: str
    config_offset: int
    """How far the leader had read the config topic: members read up to there first."""
    connectors: Mapping[str, str]
    """The members that run the connectors, by connector."""
    urls: Mapping[str, str]
    """The URLs of the members."""

    @classmethod
    def decode(cls, content: bytes) -> "GroupAssignment":
        document = _parse(content)
        return cls(
            document["leader_url"],
            document["config_offset"],
            document["connectors"],
            document["urls"],
        )

    def encode(self) -> bytes:
        return _dump(
            {
                "leader_url": self.leader_url,
                "config_offset": self.config_offset,
                "connectors": dict(self.connectors),
                "urls": dict(self.urls),
            }
        )

    def of(self, member_id: str) -> set[str]:
        """Returns the connectors of a member."""
        return {name for name, owner in self.connectors.items() if owner == member_id}

    def owner_url(self, connector: str) -> str | None:
        """Returns the URL of the instance that runs a connector, or is to run it."""
        owner = self.connectors.get(connector)
        return None if owner is None else self.urls.get(owner)


@dataclass(slots=True)
class _Load:
    """What a member runs now, and how much it will run after connectors have moved."""

    kept: set[str] = field(default_factory=set)
    assigned: set[str] = field(default_factory=set)
    expected: int = 0


def assign_connectors(
    members: Mapping[str, MemberMetadata],
    connectors: Collection[str],
    *,
    held_back: Collection[str] = (),
) -> dict[str, str]:
    """Returns the member that runs each connector; those that have to wait are not in it.

    `held_back` are not assigned yet, although nobody runs them.
    """
    existing = set(connectors)
    loads = {member_id: _Load() for member_id in sorted(members)}
    owners: dict[str, list[str]] = {}
    for member_id, member in members.items():
        for name in member.running & existing:
            owners.setdefault(name, []).append(member_id)
    for name, owning in owners.items():
        if len(owning) == 1:  # otherwise all of them end it first
            loads[owning[0]].kept.add(name)
    stopping = {name for member in members.values() for name in member.stopping}
    free = existing - owners.keys() - stopping - set(held_back)
    waiting = existing - free - {name for load in loads.values() for name in load.kept}
    for load in loads.values():
        load.expected = len(load.kept)
    for _ in waiting:  # they will be assigned soon: leave space for them
        _least(loads).expected += 1
    for name in sorted(free):
        load = _least(loads)
        load.assigned.add(name)
        load.expected += 1
    _balance(loads)
    return {
        name: member_id for member_id, load in loads.items() for name in load.kept | load.assigned
    }


def _balance(loads: Mapping[str, _Load]) -> None:
    """Takes connectors from members that have too many; the others get them in the next round."""
    while loads:
        least = _least(loads)
        most = max(loads.values(), key=lambda load: (load.expected, len(load.kept)))
        if most.expected - least.expected < 2:
            return
        if most.assigned:  # nobody runs it yet: it can move at once
            name = max(most.assigned)
            most.assigned.discard(name)
            least.assigned.add(name)
        elif most.kept:
            most.kept.discard(max(most.kept))
        else:
            return
        most.expected -= 1
        least.expected += 1


def _least(loads: Mapping[str, _Load]) -> _Load:
    return min(loads.values(), key=lambda load: load.expected)


def _parse(content: bytes) -> Any:
    try:
        document = json.loads(content)
        if document["version"] == _VERSION:
            return document
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise UnreadableAssignmentError("a member of the group is of another kind or version")


def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps({"version": _VERSION, **document}).encode()
