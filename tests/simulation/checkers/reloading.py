"""What a coordinator loads from the log is what its predecessor had when it was lost.

Compared is what is in the log: timers, sessions and who waits for whom are left out. Where the
log was cut, or where the loss came in the middle of a write, there is nothing to compare with.
A classic group lives in memory: what it could not write, its log does not have; and what was not
committed in time, as another id for a static member, it takes back though its log has it.
"""

from dataclasses import dataclass
from typing import Any

from tests.simulation.events import (
    Answered,
    ShardLoaded,
    ShardLost,
    Violation,
    WritesRefused,
)

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GroupCoordinatorState
from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.join_group import JoinGroupRequest

Contents = dict[str, Any]


class Reloading:
    """Remembers what was lost until it is loaded."""

    def __init__(self) -> None:
        self._lost: dict[tuple[str, int], tuple[int, Contents]] = {}
        self._refused: set[str] = set()
        """Topics that some write was refused by, or not committed in time."""
        self.compared = 0

    def see(self, event: Any, now_ms: int) -> None:
        match event:
            case WritesRefused(topic):
                self._refused.add(topic)
            case Answered(exchange) if isinstance(exchange.request, JoinGroupRequest):
                if exchange.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._refused.add(GROUPS_TOPIC)
            case ShardLost(topic, index, state, end_offset):
                self._lost[topic, index] = end_offset, contents(state)
            case ShardLoaded(topic, index, state, end_offset):
                before_end, before = self._lost.pop((topic, index), (-1, {}))
                if before_end == end_offset:
                    self.compared += 1
                    self._compare(topic, index, before, contents(state))

    def _compare(self, topic: str, index: int, before: Contents, after: Contents) -> None:
        for key in before.keys() | after.keys():
            old, new = before.get(key), after.get(key)
            if isinstance(old, Rebalancing):
                continue  # what goes on in memory is forgotten: the last whole generation is loaded
            if isinstance(old, Generation) and topic in self._refused:
                continue
            if old != new:
                raise Violation(f"{topic}-{index} had {key}: {old}, loaded is {new}")


class Rebalancing:
    """A classic group between two generations."""


@dataclass(slots=True, frozen=True)
class Generation:
    """A classic group that is stable, or empty."""

    state: ClassicState
    number: int
    protocol: str | None
    members: dict[str, tuple[str | None, bytes, bytes]]
    """Instance id, subscription and assignment by member id."""


def contents(state: GroupCoordinatorState | TransactionCoordinatorState) -> Contents:
    """All that a state machine has in the log, by a name for each part of it."""
    return groups_contents(state) if isinstance(state, GroupCoordinatorState) else transactions_contents(state)


def transactions_contents(transactions: TransactionCoordinatorState) -> Contents:
    left_out = {"last_producer_epoch"}
    return {
        each.transactional_id: {
            name: getattr(each, name) for name in each.__slots__ if name not in left_out
        }
        for each in transactions.by_id.values()
    }


def groups_contents(groups: GroupCoordinatorState) -> Contents:
    offsets = groups.offsets
    found: Contents = {
        f"offsets of {group_id}": {
            (topic, partition): committed
            for topic, topic_offsets in offsets.of(group_id).items()
            for partition, committed in topic_offsets
        }
        for group_id in groups.by_id
    }
    found["pending offsets"] = {
        key: dict(waiting) for key, waiting in offsets.pending.by_key.items()
    }
    for group in groups.by_id.values():
        if isinstance(group, ConsumerGroup):
            found[group.group_id] = _consumer_contents(group)
        elif isinstance(group, ClassicGroup):
            found[group.group_id] = _classic_contents(group)
    return found


def _consumer_contents(group: ConsumerGroup) -> Contents:
    left_out = {"_subscriptions", "has_new_topics"}
    return {
        name: dict(value) if isinstance(value, dict) else value
        for name in ConsumerGroup.__slots__
        if name not in left_out
        for value in [getattr(group, name)]
    }


def _classic_contents(group: ClassicGroup) -> Generation | Rebalancing:
    if group.state not in (ClassicState.STABLE, ClassicState.EMPTY):
        return Rebalancing()
    return Generation(
        group.state,
        group.generation,
        group.protocol,
        {
            each.member_id: (each.instance_id, each.metadata(group.protocol), each.assignment)
            for each in group.members.values()
        },
    )
