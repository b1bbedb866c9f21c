"""A classic group: its state, its generation and its members."""

from collections import Counter
from enum import StrEnum
from typing import Final

from barnabas.coordinator.groups.classic.member import (
    ClassicMember,
    JoinOptions,
    Protocols,
    subscribed_topics,
)
from barnabas.coordinator.groups.group import Group, GroupType
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import JoinGroupResponse
from barnabas.wire.messages.group_records import GroupMetadataKey

CONSUMER: Final = "consumer"
"""The protocol type of consumers. The metadata of others (connect, sr...) is opaque."""


class ClassicState(StrEnum):
    """The states, by their names in DescribeGroups."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: Final[dict[ClassicState, frozenset[ClassicState]]] = {
    # A member joins.
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    # All members have joined, or those that have not are removed; or no member is left.
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    # The leader's assignment is committed; or members join, change or leave before that.
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    # Members join, change or leave.
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    # Deleted, or coordinated by another broker.
    ClassicState.DEAD: frozenset({ClassicState.DEAD}),
}


class ClassicGroup(Group):
    """One group. Without members it only keeps offsets; then it may have no protocol type.

    A member is in `members` once it has joined. Its id is in `pending` from the response that
    assigns the id until it joins with it (KIP-394). `unsynced` are the members of the current
    generation that have not sent SyncGroup.
    """

    __slots__ = (
        "_protocol_counts", "generation", "group_id", "has_new_members", "is_initial_rebalance",
        "leader", "members", "needs_rebalance", "pending", "pending_join_count", "protocol",
        "protocol_type", "state", "state_since_ms", "static_members", "subscribed_topics",
        "unsynced",
    )  # fmt: skip

    group_type = GroupType.CLASSIC

    def __init__(
        self,
        group_id: str,
        state_since_ms: int | None,
        *,
        state: ClassicState = ClassicState.EMPTY,
        generation: int = 0,
        protocol_type: str = "",
        protocol: str | None = None,
        leader: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.state = state
        self.state_since_ms = state_since_ms
        """None if a record of an old version does not have it."""
        self.generation = generation
        self.protocol_type: str = protocol_type
        self.protocol = protocol
        """The name of the protocol that this generation assigns by."""
        self.leader = leader
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: set[str] = set()
        self.unsynced: set[str] = set()
        self.pending_join_count = 0
        self.subscribed_topics: frozenset[str] | None = None
        """None if unknown, as for protocol types other than `consumer`."""
        self.is_initial_rebalance = False
        """Whether the rebalance is that of an empty group, which waits for more members."""
        self.has_new_members = False
        """Whether a member joined since that wait was last extended."""
        self.needs_rebalance = False
        """Whether its record says that it had to rebalance when the record was written."""
        self._protocol_counts: Counter[str] = Counter()

    # For offsets, listing and deletion

    @property
    def state_name(self) -> str:
        return self.state

    @property
    def is_empty(self) -> bool:
        return self.state is ClassicState.EMPTY

    @property
    def is_consumer(self) -> bool:
        return self.protocol_type == CONSUMER

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool,
        api_version: int,
    ) -> None:  # fmt: skip
        self.check_alive()
        if epoch < 0 and self.is_empty:
            return  # an administrator, or a consumer that assigns its partitions itself
        if epoch >= 0 or member_id or instance_id is not None:
            self.check_member(member_id, instance_id)
            self.check_generation(epoch)
        elif not transactional:
            # Transactional commits named no member before v3.
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Group {self.group_id} has members: only they may commit its offsets.",
            )
        if not transactional and self.state is ClassicState.COMPLETING_REBALANCE:
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"Generation {epoch} of group {self.group_id} has no assignment yet: sync first.",
            )

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        self._check_exists()

    def check_delete(self) -> None:
        self._check_exists()
        if not self.is_empty:
            raise self._not_empty()

    def check_delete_offsets(self) -> None:
        self._check_exists()
        if not self.is_empty and not self.is_consumer:
            raise self._not_empty()

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.is_consumer
        return topic in self.subscribed_topics

    def retention_start_ms(self, committed_ms: int) -> int | None:
        if not self.protocol_type:
            return committed_ms
        if self.is_empty:
            return committed_ms if self.state_since_ms is None else self.state_since_ms
        if self.state is ClassicState.STABLE and self.subscribed_topics is not None:
            return committed_ms
        return None

    def tombstones(self) -> list[CoordinatorRecord]:
        return [CoordinatorRecord(GroupMetadataKey(group=self.group_id), None)]

    # Checks of requests

    def check_alive(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"Group {self.group_id} was deleted or has moved: find its coordinator again.",
            )

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises KafkaError if it is not a member, or if another member has its instance id."""
        if instance_id is not None:
            holder = self.static_members.get(instance_id)
            if holder is not None and holder != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"Member {member_id} of group {self.group_id} was replaced: another holds "
                    f"its instance id {instance_id}.",
                )
        if member_id not in self.members or (
            instance_id is not None and instance_id not in self.static_members
        ):
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Group {self.group_id} has no member {member_id}: join it again.",
            )

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"Group {self.group_id} is in generation {self.generation}, not {generation}.",
            )

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these can join: all members must have one protocol in common."""
        if self.is_empty:
            return bool(protocol_type and protocols)
        member_count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._protocol_counts[name] == member_count for name in protocols
        )

    # Members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        self.pending.discard(member.member_id)
        self._count_protocols(member.protocols, 1)
        self.pending_join_count += member.pending_join is not None

    def remove(self, member_id: str) -> None:
        """Removes a member or a pending member. The oldest of the others leads after it."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_protocols(member.protocols, -1)
            self.pending_join_count -= member.pending_join is not None
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Gives a static member another id. It keeps everything it had."""
        old_id = member.member_id
        assert member.instance_id is not None
        del self.members[old_id]
        self.members[member_id] = member
        self.static_members[member.instance_id] = member_id
        member.member_id = member_id
        if self.leader == old_id:
            self.leader = member_id
        if old_id in self.unsynced:
            self.unsynced.remove(old_id)
            self.unsynced.add(member_id)

    def change_options(self, member: ClassicMember, options: JoinOptions) -> None:
        self._count_protocols(member.protocols, -1)
        member.session_timeout_ms, member.rebalance_timeout_ms, member.protocols = options
        self._count_protocols(member.protocols, 1)

    def park(self, member: ClassicMember) -> PendingResponse[JoinGroupResponse]:
        """Has a member wait for the next generation. A second JoinGroup gets the same response."""
        if member.pending_join is None:
            member.pending_join = PendingResponse()
            self.pending_join_count += 1
        return member.pending_join

    def unpark(self, member: ClassicMember) -> PendingResponse[JoinGroupResponse] | None:
        """Returns the response that the member waits for, if any. The caller completes it."""
        response, member.pending_join = member.pending_join, None
        self.pending_join_count -= response is not None
        return response

    @property
    def has_all_joined(self) -> bool:
        return self.pending_join_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max([0, *(member.rebalance_timeout_ms for member in self.members.values())])

    # Generations

    def transition(self, state: ClassicState, now_ms: int) -> None:
        assert state in TRANSITIONS[self.state], f"{self.group_id}: {self.state} to {state}"
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return ClassicState.PREPARING_REBALANCE in TRANSITIONS[self.state]

    def begin_generation(self, now_ms: int) -> None:
        """The current members become the next generation, or the group is empty."""
        self.generation += 1
        self.protocol = self.elect_protocol() if self.members else None
        self.update_subscriptions()
        self.transition(
            ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms
        )
        self.unsynced = set(self.members)

    def elect_leader(self) -> bool:
        """Keeps the leader if it joined, else elects a member that did. Returns whether one did."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is None or leader.pending_join is None:
            joined = (each for each in self.members.values() if each.pending_join is not None)
            leader = next(joined, None)
            if leader is None:
                return False
        self.leader = leader.member_id
        return True

    def elect_protocol(self) -> str:
        """Each member votes for its preferred protocol among those that all support. The most
        votes win; of equals, the protocol that got a vote first."""
        member_count = len(self.members)
        candidates = {
            name for name, count in self._protocol_counts.items() if count == member_count
        }
        votes = Counter(
            next(name for name in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    def update_subscriptions(self) -> None:
        """Reads from the members' metadata which topics they consume."""
        if not self.is_consumer or (self.members and self.protocol is None):
            self.subscribed_topics = None
        else:
            self.subscribed_topics = subscribed_topics(
                member.metadata(self.protocol) for member in self.members.values()
            )

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        for name in protocols:
            self._protocol_counts[name] += by
            if not self._protocol_counts[name]:
                del self._protocol_counts[name]

    def _check_exists(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")

    def _not_empty(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NON_EMPTY_GROUP,
            f"Group {self.group_id} has {len(self.members)} members: stop them first.",
        )
