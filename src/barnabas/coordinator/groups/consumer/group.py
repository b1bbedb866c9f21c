"""A consumer group: its members, their targets and their current assignments.

All of it is replayed from records; `put_*` and `remove_*` are for replaying. The derived counts
(subscribers of a topic, owners of a partition...) are updated as members join and leave, so that
no request has to look at all members.
"""

from collections.abc import Hashable
from enum import StrEnum
from typing import NamedTuple, TypeVar

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState, OwnedPartitions
from barnabas.coordinator.groups.group import (
    FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS,
    Group,
    GroupType,
    PartitionCheck,
)
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError

K = TypeVar("K", bound=Hashable)


class ConsumerState(StrEnum):
    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched when it was resolved last."""

    topics: frozenset[str]
    version: int
    """The offset of the metadata image that it was resolved with."""
    timestamp_ms: int


class Subscriptions:
    """The consumer groups of a shard by the topics they subscribe to, so that a change of topics
    concerns only their subscribers."""

    __slots__ = ("_groups_by_topic", "new_topics_offset")

    def __init__(self, new_topics_offset: int = -1) -> None:
        self._groups_by_topic: dict[str, set[str]] = {}
        self.new_topics_offset = new_topics_offset
        """The offset of the last image with new topics. Regular expressions that were resolved
        with an older image may match more topics now."""

    def of(self, topic: str) -> set[str]:
        """Returns the ids of the groups that subscribe to a topic, whether it exists or not."""
        return self._groups_by_topic.get(topic, set())

    def add(self, topic: str, group_id: str) -> None:
        self._groups_by_topic.setdefault(topic, set()).add(group_id)

    def remove(self, topic: str, group_id: str) -> None:
        groups = self._groups_by_topic.get(topic)
        if groups is not None:
            groups.discard(group_id)
            if not groups:
                del self._groups_by_topic[topic]


class ConsumerGroup(Group):
    """One group. It updates its part of the shard's `subscriptions`; a group that is not created
    yet has subscriptions of its own."""

    __slots__ = ("_stable_at", "_subscriptions", "_topic_counts", "assignment_epoch",
                 "assignment_timestamp_ms", "assignors", "classic_member_count",
                 "classic_protocols", "epoch", "group_id", "has_new_topics",
                 "has_partition_metadata", "members", "metadata_hash", "owners", "regexes",
                 "resolved_regexes", "static_members", "targets")  # fmt: skip

    group_type = GroupType.CONSUMER

    def __init__(self, group_id: str, subscriptions: Subscriptions) -> None:
        self.group_id = group_id
        self.epoch = 1
        """Bumped whenever the target assignment has to be computed again."""
        self.metadata_hash = 0
        """The hash of the subscribed topics when `epoch` was set."""
        self.assignment_epoch = 1
        """The group epoch that `targets` were computed for; at most `epoch`."""
        self.assignment_timestamp_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        """The target assignment by member id. Not every member needs to be a key."""
        self.static_members: dict[str, str] = {}
        """Member ids by instance id."""
        self.owners: dict[bytes, dict[int, str]] = {}
        """The one member that may consume a partition or has yet to revoke it, by topic id and
        partition."""
        self.assignors: dict[str, int] = {}
        """The number of members that name an assignor, by its name."""
        self.regexes: dict[str, int] = {}
        """The number of members that subscribe by a regular expression."""
        self.resolved_regexes: dict[str, ResolvedRegex] = {}
        self.classic_member_count = 0
        self.classic_protocols: dict[str, int] = {}
        """The number of classic members that support a protocol, by its name."""
        self.has_new_topics = True
        """Whether the subscribed topics may have changed since `metadata_hash` was computed. Not in
        the log."""
        self.has_partition_metadata = False
        """Whether the log still has a record of type 4, which needs a tombstone."""
        self._subscriptions = subscriptions
        self._topic_counts: dict[str, int] = {}  # subscriptions by name and by regex
        self._stable_at: dict[int, int] = {}  # the number of stable members by epoch

    @property
    def state(self) -> ConsumerState:
        if not self.members:
            return ConsumerState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerState.ASSIGNING
        if self._stable_at.get(self.assignment_epoch, 0) < len(self.members):
            return ConsumerState.RECONCILING
        return ConsumerState.STABLE

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def protocol_type(self) -> str:
        return "consumer"

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def subscribed_topics(self) -> dict[str, int]:
        """The number of subscriptions of a topic, by name or by regex. Not to be changed by the
        caller. A topic need not exist."""
        return self._topic_counts

    def member(self, member_id: str) -> ConsumerMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member {member_id} is not a member of group {self.group_id}.",
            )
        return member

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id) if instance_id is not None else None
        return self.members.get(member_id) if member_id is not None else None

    def target(self, member_id: str) -> Assignment:
        return self.targets.get(member_id, {})

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Returns the names of the topics that it subscribes to, as far as its regular expression
        is resolved."""
        resolved = self.resolved_regexes.get(member.subscribed_topic_regex)
        if resolved is None:
            return member.subscribed_topic_names
        return member.subscribed_topic_names | resolved.topics

    def is_owned(self, topic_id: bytes, partition: int) -> bool:
        """Whether some member may still consume the partition."""
        return partition in self.owners.get(topic_id, ())

    def preferred_assignor(self) -> str | None:
        """Returns the assignor that most members name; None if no member names one."""
        return most_common(self.assignors)

    # For offsets, listing and deletion

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool,
        api_version: int,
    ) -> PartitionCheck | None:  # fmt: skip
        if epoch < 0 and not self.members:
            return None  # an administrator, or a consumer that assigns its partitions itself
        if transactional and epoch == -1 and not member_id and instance_id is None:
            return None  # a producer that does not name the member it commits for
        member = self.member(member_id)
        if (
            not transactional
            and not member.uses_classic_protocol
            and api_version < FIRST_COMMIT_VERSION_WITH_MEMBER_EPOCHS
        ):
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members of consumer groups.",
            )
        if epoch == member.member_epoch:
            return None
        if epoch > member.member_epoch:
            raise _stale(
                member, f"Epoch {epoch} is newer than the member's, {member.member_epoch}."
            )
        return _check_owned_since(member, epoch)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                member, f"Epoch {member_epoch} is not that of the member, {member.member_epoch}."
            )

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(
                ErrorCode.NON_EMPTY_GROUP, f"Group {self.group_id} has members: it is in use."
            )

    def check_delete_offsets(self) -> None:
        pass  # offsets of a topic without subscribers may be deleted at any time

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self._topic_counts

    def retention_start_ms(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[CoordinatorRecord]:
        group_id = self.group_id
        return [
            *(records.current_assignment_tombstone(group_id, each) for each in self.members),
            *(records.target_assignment_tombstone(group_id, each) for each in self.members),
            records.assignment_epoch_tombstone(group_id),
            *(records.member_tombstone(group_id, each) for each in self.members),
            *(records.regular_expression_tombstone(group_id, each)
              for each in self.resolved_regexes),
            records.partition_metadata_tombstone(group_id),
            records.group_tombstone(group_id),
        ]  # fmt: skip

    # Replay

    def put_member(self, member: ConsumerMember) -> None:
        """Adds or replaces a member."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        self._count(old, member)
        if old is not None:
            self._disown(member.member_id, old.assigned, old.pending_revocation)
        self._own(member.member_id, member.assigned, member.pending_revocation)
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member, None)
        self._disown(member_id, member.assigned, member.pending_revocation)
        if self.static_members.get(member.instance_id or "") == member_id:
            del self.static_members[member.instance_id or ""]

    def put_regex(self, pattern: str, resolved: ResolvedRegex) -> None:
        self.remove_regex(pattern)
        self.resolved_regexes[pattern] = resolved
        for topic in resolved.topics:
            self._count_topic(topic, 1)

    def remove_regex(self, pattern: str) -> None:
        resolved = self.resolved_regexes.pop(pattern, None)
        if resolved is not None:
            for topic in resolved.topics:
                self._count_topic(topic, -1)

    def unsubscribe_all(self) -> None:
        """The group was deleted: removes its subscriptions."""
        for topic in list(self._topic_counts):
            self._count_topic(topic, -self._topic_counts[topic])

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        for member, step in ((old, -1), (new, 1)):
            if member is None:
                continue
            if member.state is MemberState.STABLE:
                _add(self._stable_at, member.member_epoch, step)
            if member.server_assignor is not None:
                _add(self.assignors, member.server_assignor, step)
            if member.subscribed_topic_regex:
                _add(self.regexes, member.subscribed_topic_regex, step)
            if member.classic is not None:
                self.classic_member_count += step
                for protocol in member.classic.supported_protocols:
                    _add(self.classic_protocols, protocol.name, step)
        before = old.subscribed_topic_names if old is not None else frozenset()
        after = new.subscribed_topic_names if new is not None else frozenset()
        if before is not after:
            for topic in before - after:
                self._count_topic(topic, -1)
            for topic in after - before:
                self._count_topic(topic, 1)

    def _count_topic(self, topic: str, step: int) -> None:
        _add(self._topic_counts, topic, step)
        if topic in self._topic_counts:
            self._subscriptions.add(topic, self.group_id)
        else:
            self._subscriptions.remove(topic, self.group_id)

    def _own(self, member_id: str, *owned: OwnedPartitions) -> None:
        for topics in owned:
            for topic_id, partitions in topics.items():
                self.owners.setdefault(topic_id, {}).update(dict.fromkeys(partitions, member_id))

    def _disown(self, member_id: str, *owned: OwnedPartitions) -> None:
        """Releases what the member owned. A partition that another member owns by now stays with
        it, since a compacted log may have the new owner before the release."""
        for topics in owned:
            for topic_id, partitions in topics.items():
                owners = self.owners.get(topic_id, {})
                for partition in partitions:
                    if owners.get(partition) == member_id:
                        del owners[partition]
                if not owners:
                    self.owners.pop(topic_id, None)


def most_common(assignors: dict[str, int]) -> str | None:
    """Returns the name with the highest count. Of equals, uniform precedes range, as in Kafka."""
    return max(assignors, key=lambda name: (assignors[name], name), default=None)


def _add(counts: dict[K, int], key: K, step: int) -> None:
    """Adds to a count. A key whose count is zero is removed."""
    count = counts.get(key, 0) + step
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)


def _check_owned_since(member: ConsumerMember, epoch: int) -> PartitionCheck:
    """A commit with an older epoch is valid for partitions that the member has owned since then."""

    def check(topic: str, topic_id: bytes, partition: int) -> None:
        since = member.owned_since(topic_id, partition)
        if since is None:
            raise _stale(member, f"{topic}-{partition} is not the member's.")
        if epoch < since:
            raise _stale(
                member, f"{topic}-{partition} is the member's since epoch {since}, after {epoch}."
            )

    return check


def _stale(member: ConsumerMember, message: str) -> KafkaError:
    code = (
        ErrorCode.ILLEGAL_GENERATION
        if member.uses_classic_protocol
        else ErrorCode.STALE_MEMBER_EPOCH
    )
    return KafkaError(code, f"Member {member.member_id}: {message}")
