"""A coordinator loads from the log the state that its predecessor had.

Only the state in the log is compared: no timers, sessions or pending responses. There is nothing
to compare if the log was truncated or if the broker was killed while it wrote. A classic group
keeps generations in memory that it could not write; and it reverts a change that was not committed
in time (a new id of a static member), though its log has it.
"""

from dataclasses import dataclass
from typing import Any

from tests.simulation.coordinator.events import Responded, ShardLoaded, ShardLost, UnderMinIsr
from tests.simulation.world.events import Violation

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.state import GroupCoordinatorState
from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import JoinGroupRequest

Contents = dict[str, Any]


class LoadedState:
    """Keeps the state of a lost shard until it is loaded again."""

    def __init__(self) -> None:
        self._lost: dict[tuple[str, int], tuple[int, Contents]] = {}
        self._failed_writes: set[str] = set()
        """Topics in which a write failed, or was not committed in time."""
        self.compared = 0

    def on_event(self, event: Any, now_ms: int) -> None:
        match event:
            case UnderMinIsr(topic):
                self._failed_writes.add(topic)
            case Responded(sent) if isinstance(sent.request, JoinGroupRequest):
                if sent.response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
                    self._failed_writes.add(GROUPS_TOPIC)
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
                continue  # only the last complete generation is in the log
            if isinstance(old, Generation) and topic in self._failed_writes:
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
    """Returns the parts of a state machine that are in the log, by name."""
    return (
        groups_contents(state)
        if isinstance(state, GroupCoordinatorState)
        else transactions_contents(state)
    )


def transactions_contents(transactions: TransactionCoordinatorState) -> Contents:
    left_out = {"last_producer_epoch"}
    return {
        transaction.transactional_id: {
            name: getattr(transaction, name)
            for name in transaction.__slots__
            if name not in left_out
        }
        for transaction in transactions.by_id.values()
    }


def groups_contents(groups: GroupCoordinatorState) -> Contents:
    offsets = groups.offsets
    contents: Contents = {
        f"offsets of {group_id}": {
            (topic, partition): committed
            for topic, topic_offsets in offsets.of(group_id).items()
            for partition, committed in topic_offsets
        }
        for group_id in groups.by_id
    }
    contents["pending offsets"] = {
        key: dict(waiting) for key, waiting in offsets.pending.by_key.items()
    }
    for group in groups.by_id.values():
        if isinstance(group, ConsumerGroup):
            contents[group.group_id] = _consumer_contents(group)
        elif isinstance(group, ClassicGroup):
            contents[group.group_id] = _classic_contents(group)
    return contents


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
            member.member_id: (
                member.instance_id,
                member.metadata(group.protocol),
                member.assignment,
            )
            for member in group.members.values()
        },
    )
