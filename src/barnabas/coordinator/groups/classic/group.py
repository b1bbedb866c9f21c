"""A classic group: its state, its generation, and who is in it."""

from collections import Counter
from enum import StrEnum
from typing import Final

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.groups.classic.member import ClassicMember, Protocols, Terms
from barnabas.coordinator.groups.classic.member import subscribed_topics
from barnabas.coordinator.groups.group import Group, GroupType
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import GroupMetadataKey
from barnabas.wire.messages.join_group import JoinGroupResponse

CONSUMER: Final = "consumer"
"""The protocol type of consumers. Of others (connect, sr...) we know nothing."""


class ClassicState(StrEnum):
    """As DescribeGroups names them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: Final[dict[ClassicState, frozenset[ClassicState]]] = {
    # Somebody joins.
    ClassicState.EMPTY: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    # All are there, or those that are not have been given up; or nobody is left.
    ClassicState.PREPARING_REBALANCE: frozenset(
        {ClassicState.COMPLETING_REBALANCE, ClassicState.EMPTY, ClassicState.DEAD}
    ),
    # The leader's assignment is in the log; or members come, change or go before that.
    ClassicState.COMPLETING_REBALANCE: frozenset(
        {ClassicState.STABLE, ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}
    ),
    # Members come, change or go.
    ClassicState.STABLE: frozenset({ClassicState.PREPARING_REBALANCE, ClassicState.DEAD}),
    # Deleted, or led by another broker.
    ClassicState.DEAD: frozenset({ClassicState.DEAD}),
}


class ClassicGroup(Group):
    """One group. Without members it only keeps offsets; then it may have no protocol type.

    A member is in `members` once it joined; in `pending` between being told its id and joining
    with it (KIP-394). `unsynced` are the members of the current generation that have not asked
    for their assignment.
    """

    __slots__ = (
        "_offering_counts", "awaiting_join_count", "generation", "group_id", "has_new_members",
        "is_initial_rebalance", "is_to_rebalance", "leader", "members", "pending", "protocol",
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
        """None if a record of an old version did not say."""
        self.generation = generation
        self.protocol_type: str = protocol_type
        self.protocol = protocol
        """The name of the one that this generation assigns by."""
        self.leader = leader
        self.members: dict[str, ClassicMember] = {}
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.pending: set[str] = set()
        self.unsynced: set[str] = set()
        self.awaiting_join_count = 0
        self.subscribed_topics: frozenset[str] | None = None
        """None where we cannot know, as with protocol types other than consumer's."""
        self.is_initial_rebalance = False
        """Whether the rebalance being prepared is an empty group's, which waits for company."""
        self.has_new_members = False
        """Whether anybody joined since that wait was last extended."""
        self.is_to_rebalance = False
        """Whether its record says that a rebalance was due when it was written."""
        self._offering_counts: Counter[str] = Counter()

    # What offsets, listings and deletion ask

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
            return  # an administrator, or a consumer that assigns itself its partitions
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

    # What requests are held against

    def check_alive(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                f"Group {self.group_id} was deleted or has moved: ask again for its coordinator.",
            )

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """KafkaError unless it is a member, and the one that holds the instance id it names."""
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
                f"Group {self.group_id} has no member {member_id}: join it anew.",
            )

    def check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise KafkaError(
                ErrorCode.ILLEGAL_GENERATION,
                f"Group {self.group_id} is in generation {self.generation}, not {generation}.",
            )

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether somebody who offers these can join: all must have one protocol in common."""
        if self.is_empty:
            return bool(protocol_type and protocols)
        everybody = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._offering_counts[name] == everybody for name in protocols
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
        self._count_offers(member.protocols, 1)
        self.awaiting_join_count += member.awaiting_join is not None

    def remove(self, member_id: str) -> None:
        """Take a member out, or one that was to be. The oldest of the others leads after it."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count_offers(member.protocols, -1)
            self.awaiting_join_count -= member.awaiting_join is not None
            if member.instance_id is not None:
                del self.static_members[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending.discard(member_id)
        self.unsynced.discard(member_id)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """Give a static member another id, and with it all that it had."""
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

    def change_terms(self, member: ClassicMember, terms: Terms) -> None:
        self._count_offers(member.protocols, -1)
        member.session_timeout_ms, member.rebalance_timeout_ms, member.protocols = terms
        self._count_offers(member.protocols, 1)

    def park(self, member: ClassicMember) -> PendingResponse[JoinGroupResponse]:
        """Have a member wait for the next generation. Who asks twice waits for one answer."""
        if member.awaiting_join is None:
            member.awaiting_join = PendingResponse()
            self.awaiting_join_count += 1
        return member.awaiting_join

    def unpark(self, member: ClassicMember) -> PendingResponse[JoinGroupResponse] | None:
        """Whom to answer, if the member waits; it is for the caller to do that."""
        answer, member.awaiting_join = member.awaiting_join, None
        self.awaiting_join_count -= answer is not None
        return answer

    @property
    def has_all_joined(self) -> bool:
        return self.awaiting_join_count == len(self.members) and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest that any member asks for."""
        return max([0, *(each.rebalance_timeout_ms for each in self.members.values())])

    # Generations

    def move(self, state: ClassicState, now_ms: int) -> None:
        assert state in MOVES[self.state], f"{self.group_id}: {self.state} to {state}"
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return ClassicState.PREPARING_REBALANCE in MOVES[self.state]

    def begin_generation(self, now_ms: int) -> None:
        """Those who are in it now are the next generation, or nobody is."""
        self.generation += 1
        self.protocol = self.elect_protocol() if self.members else None
        self.learn_subscriptions()
        self.move(ClassicState.COMPLETING_REBALANCE if self.members else ClassicState.EMPTY, now_ms)
        self.unsynced = set(self.members)

    def elect_leader(self) -> bool:
        """Keep the leader if it joined, else take one who did; whether there is any."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is None or leader.awaiting_join is None:
            joined = (each for each in self.members.values() if each.awaiting_join is not None)
            leader = next(joined, None)
            if leader is None:
                return False
        self.leader = leader.member_id
        return True

    def elect_protocol(self) -> str:
        """Each member votes for what it prefers among what all offer; most votes win, and of
        equals the one that was voted for first."""
        everybody = len(self.members)
        candidates = {name for name, count in self._offering_counts.items() if count == everybody}
        votes = Counter(
            next(name for name in member.protocols if name in candidates)
            for member in self.members.values()
        )
        return max(votes, key=votes.__getitem__)

    def learn_subscriptions(self) -> None:
        """Find out which topics the members consume."""
        if not self.is_consumer or (self.members and self.protocol is None):
            self.subscribed_topics = None
        else:
            self.subscribed_topics = subscribed_topics(
                member.metadata(self.protocol) for member in self.members.values()
            )

    def _count_offers(self, protocols: Protocols, by: int) -> None:
        for name in protocols:
            self._offering_counts[name] += by
            if not self._offering_counts[name]:
                del self._offering_counts[name]

    def _check_exists(self) -> None:
        if self.state is ClassicState.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")

    def _not_empty(self) -> KafkaError:
        return KafkaError(
            ErrorCode.NON_EMPTY_GROUP,
            f"Group {self.group_id} has {len(self.members)} members: stop them first.",
        )
