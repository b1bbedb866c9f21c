"""Who leads a partition, and who is in sync, when something about its replicas has changed.

Pure functions from a partition to the record that changes it. With eligible leader replicas
(KIP-966) the in-sync set may become empty: replicas that left it while it was below the minimum
hold everything committed, and may lead without loss.
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
from barnabas.wire.messages.metadata_records import PartitionChangeRecord

# Before it, brokers needed a new leader epoch when the in-sync set shrank (KAFKA-15021).
_SHRINKS_KEEP_EPOCH_FROM: Final = 12

_AS_BEFORE: Final[Mapping[int, bytes]] = MappingProxyType({})


class Election(Enum):
    """Which replicas may become leader, and which is taken first."""

    ONLINE = auto()  # one that is in sync; the present leader stays if it can
    PREFERRED = auto()  # as online, but the first replica goes before the present leader
    UNCLEAN = auto()  # any that is alive, if there is no other: may lose records


@dataclass(slots=True, frozen=True)
class ElectionRules:
    """What one topic's elections go by."""

    election: Election
    min_isr: int
    eligible_leaders: bool
    shrinking_starts_epoch: bool = False
    names_directories: bool = True


class ReplicaAssignment(NamedTuple):
    """Who holds a partition, and which of them are only coming or still going."""

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
        """The assignment and in-sync set once all that shall stay are in sync; before, as it is."""
        staying = tuple(replica for replica in self.replicas if replica not in self.removing)
        in_sync = tuple(replica for replica in isr if replica not in self.removing)
        if not staying or not set(staying) <= set(in_sync):
            return self, isr
        return ReplicaAssignment(staying), in_sync


def election_rules(
    topic: TopicImage,
    image: MetadataImage,
    context: ControllerContext,
    *,
    election: Election | None = None,
) -> ElectionRules:
    """The rules that the topic's settings and the cluster's features make."""
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
    """Whether a broker is active and the directory of its replica is online.

    The image still shows a `joining` broker as fenced: that changes with the same decision.
    """

    def acceptable(broker_id: int) -> bool:
        broker = image.brokers.get(broker_id)
        return (
            broker is not None
            and broker_id not in excluded
            and (not broker.fenced or broker_id == joining)
            and not broker.in_controlled_shutdown
            and broker.has_online(partition.directory_of(broker_id))
        )

    return acceptable


def build_partition_change(
    topic_id: bytes,
    number: int,
    partition: PartitionRegistration,
    rules: ElectionRules,
    acceptable: Callable[[int], bool],
    *,
    isr: Replicas | None = None,
    assignment: ReplicaAssignment | None = None,
    unclean_shutdown: int | None = None,
    recovery_state: int | None = None,
    directories: Mapping[int, bytes] = _AS_BEFORE,
) -> PartitionChangeRecord | None:
    """The record for a partition whose in-sync set shall be `isr`, or None if nothing changes.

    `assignment` is who shall hold it; `lost_log` a broker that stopped uncleanly and may have
    lost what it once had; `directories` where replicas are that are new or have moved.
    """
    held = assignment or ReplicaAssignment.of(partition)
    target_isr = partition.isr if isr is None else isr
    if held.is_reassigning:
        held, target_isr = held.completed(target_isr)
    elr = _eligible(partition, held.replicas, target_isr, rules, unclean_shutdown)
    leader, unclean = _elect(partition, held.replicas, target_isr, elr, rules, acceptable)
    recovery = partition.recovery_state if recovery_state is None else recovery_state
    if unclean:
        target_isr, elr, recovery = (leader,), (), RecoveryState.RECOVERING
    elif not target_isr and leader in elr:
        target_isr, elr = (leader,), tuple(replica for replica in elr if replica != leader)
    elif not target_isr and not rules.eligible_leaders:
        target_isr = partition.isr  # kept, so that its members may lead when they are back
    after = PartitionRegistration(
        held.replicas,
        target_isr,
        leader,
        partition.leader_epoch,
        partition.partition_epoch,
        _directories(partition, held, rules, directories),
        held.removing,
        held.adding,
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
    """The changes to partitions when a broker leaves, joins, or comes back without its log."""
    gone = (leaving, unclean_shutdown)
    rules: dict[bytes, ElectionRules] = {}
    for topic, number, partition in existing_partitions(image, partitions):
        if topic.topic_id not in rules:
            rules[topic.topic_id] = election_rules(topic, image, context)
        record = build_partition_change(
            topic.topic_id,
            number,
            partition,
            rules[topic.topic_id],
            acceptable_leader_predicate(image, partition, excluded=gone, joining=joining),
            isr=tuple(replica for replica in partition.isr if replica not in gone),
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
    """The change that an election of that kind makes to a partition, if any."""
    partition = topic.partitions[number]
    rules = election_rules(topic, image, context, election=election)
    return build_partition_change(
        topic.topic_id, number, partition, rules, acceptable_leader_predicate(image, partition)
    )


def existing_partitions(
    image: MetadataImage, keys: Iterable[PartitionKey]
) -> Iterator[tuple[TopicImage, int, PartitionRegistration]]:
    """The partitions of these ids and numbers, as far as they exist."""
    for topic_id, number in keys:
        topic = image.topics.by_id(topic_id)
        if topic is not None and number in topic.partitions:
            yield topic, number, topic.partitions[number]


def _eligible(
    partition: PartitionRegistration,
    replicas: Replicas,
    isr: Replicas,
    rules: ElectionRules,
    lost_log: int | None,
) -> Replicas:
    """Below the minimum, whoever leaves the in-sync set still has all that is committed."""
    if not rules.eligible_leaders or len(isr) >= rules.min_isr:
        return ()
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    return tuple(r for r in candidates if r in replicas and r not in isr and r != lost_log)


def _elect(
    partition: PartitionRegistration,
    replicas: Replicas,
    isr: Replicas,
    elr: Replicas,
    rules: ElectionRules,
    acceptable: Callable[[int], bool],
) -> tuple[int, bool]:
    """The leader, and whether it may lack committed records."""
    in_turn = (partition.leader, *replicas)
    if rules.election is Election.PREFERRED:
        in_turn = (replicas[0], *in_turn)
    clean = isr or elr
    for replica in in_turn:
        if replica in clean and acceptable(replica):
            return replica, False
    if rules.eligible_leaders and not clean and len(partition.last_known_elr) == 1:
        last_known = partition.last_known_elr[0]
        if acceptable(last_known):
            return last_known, True
    if rules.election is Election.UNCLEAN:
        for replica in replicas:
            if acceptable(replica):
                return replica, True
    return NO_LEADER, False


def _last_known_leader(
    partition: PartitionRegistration, leader: int, isr: Replicas, rules: ElectionRules
) -> Replicas:
    """Whom to wait for when nobody is left who surely has everything."""
    if not rules.eligible_leaders:
        return partition.last_known_elr
    if not isr and partition.isr and partition.leader != NO_LEADER:
        return (partition.leader,)
    return () if leader != NO_LEADER else partition.last_known_elr


def _directories(
    partition: PartitionRegistration,
    held: ReplicaAssignment,
    rules: ElectionRules,
    changed: Mapping[int, bytes],
) -> Directories:
    if not rules.names_directories or not (changed or held.replicas != partition.replicas):
        return partition.directories
    return tuple(changed.get(r) or partition.directory_of(r) for r in held.replicas)


def _difference(
    topic_id: bytes,
    number: int,
    before: PartitionRegistration,
    after: PartitionRegistration,
    rules: ElectionRules,
) -> PartitionChangeRecord:
    """The record that names what differs, and the leader wherever a new epoch has to begin."""
    record = PartitionChangeRecord(topic_id=topic_id, partition_id=number)
    if (
        after.leader != before.leader
        or _removes_replicas(before, after)
        or (rules.shrinking_starts_epoch and not set(before.isr) <= set(after.isr))
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
    """Then a new epoch tells those who were removed, and keeps them from coming back."""
    return after.replicas is not before.replicas and not set(before.replicas) <= set(after.replicas)
