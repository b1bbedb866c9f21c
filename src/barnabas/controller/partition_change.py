"""Builds the records that change leader, ISR and replicas of a partition.

These are pure functions, like Kafka's PartitionChangeBuilder. With eligible leader replicas
(KIP-966) the ISR may become empty: replicas that left it while it was below the minimum have all
committed records, and may lead without loss.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, NamedTuple

from barnabas.controller.context import ControllerContext
from barnabas.metadata.features import DIRECTORY_ASSIGNMENT_FROM
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_index import PartitionKey
from barnabas.metadata.states import (
    NO_LEADER,
    Directories,
    PartitionRegistration,
    RecoveryState,
    Replicas,
    TopicImage,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata_records import PartitionChangeRecord

# Before it, brokers needed a new leader epoch when the ISR shrank (KAFKA-15021).
_SHRINKS_KEEP_EPOCH_FROM: Final = 12

_UNCHANGED: Final[Mapping[int, bytes]] = MappingProxyType({})


class Election(Enum):
    """Which replicas may become leader, and in which order."""

    ONLINE = auto()  # an in-sync replica; the current leader stays if it can
    PREFERRED = auto()  # as ONLINE, but the preferred replica comes before the current leader
    UNCLEAN = auto()  # any live replica if no other can lead: may lose records


@dataclass(slots=True, frozen=True)
class ElectionRules:
    """The rules for elections in one topic."""

    election: Election
    min_isr: int
    eligible_leaders: bool
    shrink_begins_epoch: bool = False
    has_directories: bool = True


class ReplicaAssignment(NamedTuple):
    """The replicas of a partition, and those that are being added or removed."""

    replicas: Replicas
    adding: Replicas = ()
    removing: Replicas = ()

    @classmethod
    def of(cls, partition: PartitionRegistration) -> "ReplicaAssignment":
        return cls(partition.replicas, partition.adding, partition.removing)

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def completed(self, isr: Replicas) -> tuple["ReplicaAssignment", Replicas]:
        """Returns assignment and ISR, completed if all target replicas are in sync."""
        remaining = tuple(replica for replica in self.replicas if replica not in self.removing)
        in_sync = tuple(replica for replica in isr if replica not in self.removing)
        if not remaining or not set(remaining) <= set(in_sync):
            return self, isr
        return ReplicaAssignment(remaining), in_sync


def election_rules(
    topic: TopicImage,
    image: MetadataImage,
    context: ControllerContext,
    *,
    election: Election | None = None,
) -> ElectionRules:
    """Returns the rules by the topic's configs and the cluster's features."""
    config = context.resolver.topic(topic.name)
    replication_factor = len(topic.partitions[0].replicas) if 0 in topic.partitions else 1
    if election is None:
        unclean = config["unclean.leader.election.enable"]
        election = Election.UNCLEAN if unclean else Election.ONLINE
    return ElectionRules(
        election,
        min(config["min.insync.replicas"], replication_factor),
        image.has_eligible_leaders,
        image.metadata_level < _SHRINKS_KEEP_EPOCH_FROM,
        image.metadata_level >= DIRECTORY_ASSIGNMENT_FROM,
    )


def acceptable_leader_predicate(
    image: MetadataImage,
    partition: PartitionRegistration,
    *,
    excluded: Collection[int | None] = (),
    joining: int | None = None,
) -> Callable[[int], bool]:
    """Returns the predicate: a broker is active and the directory of its replica is online.

    A `joining` broker is still fenced in the image: the same decision unfences it.
    """

    def is_acceptable(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        return (
            broker is not None
            and broker_id not in excluded
            and (not broker.fenced or broker_id == joining)
            and not broker.in_controlled_shutdown
            and broker.has_online(partition.directory_of(broker_id))
        )

    return is_acceptable


def build_partition_change(
    topic_id: bytes,
    number: int,
    partition: PartitionRegistration,
    rules: ElectionRules,
    is_acceptable: Callable[[int], bool],
    *,
    isr: Replicas | None = None,
    assignment: ReplicaAssignment | None = None,
    unclean_shutdown: int | None = None,
    recovery_state: int | None = None,
    directories: Mapping[int, bytes] = _UNCHANGED,
) -> PartitionChangeRecord | None:
    """Returns the record that changes the ISR to `isr`, or None if nothing changes.

    `assignment` are the new replicas; `unclean_shutdown` is a broker that stopped uncleanly and
    may have lost committed records; `directories` are those of new or moved replicas.
    """
    new_assignment = assignment or ReplicaAssignment.of(partition)
    target_isr = partition.isr if isr is None else isr
    if new_assignment.is_reassigning:
        new_assignment, target_isr = new_assignment.completed(target_isr)
    elr = _eligible_leaders(partition, new_assignment.replicas, target_isr, rules, unclean_shutdown)
    leader, unclean = _elect_leader(
        partition, new_assignment.replicas, target_isr, elr, rules, is_acceptable
    )
    recovery = partition.recovery_state if recovery_state is None else recovery_state
    if unclean:
        target_isr, elr, recovery = (leader,), (), RecoveryState.RECOVERING
    elif not target_isr and leader in elr:
        target_isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
    elif not target_isr and not rules.eligible_leaders:
        target_isr = partition.isr  # kept, so that its members may lead when they return
    after = PartitionRegistration(
        new_assignment.replicas,
        target_isr,
        leader,
        partition.leader_epoch,
        partition.partition_epoch,
        _directories(partition, new_assignment, rules, directories),
        new_assignment.removing,
        new_assignment.adding,
        recovery,
        elr,
        _last_known_leader(partition, leader, target_isr, rules),
    )
    if after == partition:
        return None
    return _difference(topic_id, number, partition, after, rules)


def leader_and_isr_updates(
    image: MetadataImage,
    context: ControllerContext,
    partitions: Iterable[PartitionKey],
    *,
    leaving: int | None = None,
    joining: int | None = None,
    unclean_shutdown: int | None = None,
) -> Iterator[PartitionChangeRecord]:
    """Yields the changes when a broker leaves, joins, or returns after an unclean shutdown."""
    excluded = (leaving, unclean_shutdown)
    rules: dict[bytes, ElectionRules] = {}
    for topic, number, partition in existing_partitions(image, partitions):
        if topic.topic_id not in rules:
            rules[topic.topic_id] = election_rules(topic, image, context)
        record = build_partition_change(
            topic.topic_id,
            number,
            partition,
            rules[topic.topic_id],
            acceptable_leader_predicate(image, partition, excluded=excluded, joining=joining),
            isr=tuple(replica for replica in partition.isr if replica not in excluded),
            unclean_shutdown=unclean_shutdown,
        )
        if record is not None:
            yield record


def elect_leader(
    topic: TopicImage,
    number: int,
    election: Election,
    image: MetadataImage,
    context: ControllerContext,
) -> PartitionChangeRecord | None:
    """Returns the change that an election of that kind makes; None if there is none."""
    partition = topic.partitions[number]
    rules = election_rules(topic, image, context, election=election)
    return build_partition_change(
        topic.topic_id, number, partition, rules, acceptable_leader_predicate(image, partition)
    )


def existing_partitions(
    image: MetadataImage, keys: Iterable[PartitionKey]
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """Yields the partitions with these keys that exist."""
    for topic_id, number in keys:
        topic = image.topics.by_id(topic_id)
        if topic is not None and number in topic.partitions:
            yield topic, number, topic.partitions[number]


def require_partition(
    image: MetadataImage, topic_id: bytes, number: int
) -> tuple[TopicImage, PartitionRegistration]:
    """Returns a topic and its partition. Raises KafkaError if one of them does not exist."""
    topic = image.topics.by_id(topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    if number not in topic.partitions:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic, topic.partitions[number]


def _eligible_leaders(
    partition: PartitionRegistration,
    replicas: Replicas,
    isr: Replicas,
    rules: ElectionRules,
    unclean_shutdown: int | None,
) -> Replicas:
    """Returns the eligible leader replicas: those that left the ISR below its minimum."""
    if not rules.eligible_leaders or len(isr) >= rules.min_isr:
        return ()
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    return tuple(r for r in candidates if r in replicas and r not in isr and r != unclean_shutdown)


def _elect_leader(
    partition: PartitionRegistration,
    replicas: Replicas,
    isr: Replicas,
    elr: Replicas,
    rules: ElectionRules,
    is_acceptable: Callable[[int], bool],
) -> tuple[int, bool]:
    """Returns the leader, and whether it may lack committed records."""
    candidates_in_order = (partition.leader, *replicas)
    if rules.election is Election.PREFERRED:
        candidates_in_order = (replicas[0], *candidates_in_order)
    clean = isr or elr
    for replica in candidates_in_order:
        if replica in clean and is_acceptable(replica):
            return replica, False
    if rules.eligible_leaders and not clean and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        if is_acceptable(last_known):
            return last_known, True
    if rules.election is Election.UNCLEAN:
        for replica in replicas:
            if is_acceptable(replica):
                return replica, True
    return NO_LEADER, False


def _last_known_leader(
    partition: PartitionRegistration, leader: int, isr: Replicas, rules: ElectionRules
) -> Replicas:
    """Returns the last leader, to wait for when no replica has all committed records."""
    if not rules.eligible_leaders:
        return partition.last_known_elr
    if not isr and partition.isr and partition.leader != NO_LEADER:
        return (partition.leader,)
    return () if leader != NO_LEADER else partition.last_known_elr


def _directories(
    partition: PartitionRegistration,
    new_assignment: ReplicaAssignment,
    rules: ElectionRules,
    changed: Mapping[int, bytes],
) -> Directories:
    if not rules.has_directories or not (changed or new_assignment.replicas != partition.replicas):
        return partition.directories
    return tuple(changed.get(r) or partition.directory_of(r) for r in new_assignment.replicas)


def _difference(
    topic_id: bytes,
    number: int,
    before: PartitionRegistration,
    after: PartitionRegistration,
    rules: ElectionRules,
) -> PartitionChangeRecord:
    """Returns the record of the differences, with a leader if a new epoch has to begin."""
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=number)
    if (
        after.leader != before.leader
        or _removes_replicas(before, after)
        or (rules.shrink_begins_epoch and not set(before.isr) <= set(after.isr))
    ):
        record.leader = after.leader
    if after.recovery_state != before.recovery_state:
        record.leader_recovery_state = after.recovery_state
    if after.isr != before.isr:
        record.isr = list(after.isr)
    if after.elr != before.elr:
        record.eligible_leader_replicas = list(after.elr)
    if after.last_known_elr != before.last_known_elr:
        record.last_known_elr = list(after.last_known_elr)
    if after.replicas != before.replicas:
        record.replicas = list(after.replicas)
    if after.adding != before.adding:
        record.adding_replicas = list(after.adding)
    if after.removing != before.removing:
        record.removing_replicas = list(after.removing)
    if after.directories != before.directories:
        record.directories = list(after.directories)
    return record


def _removes_replicas(before: PartitionRegistration, after: PartitionRegistration) -> bool:
    """Whether replicas are removed: then a new epoch fences them."""
    return after.replicas is not before.replicas and not set(before.replicas) <= set(after.replicas)
