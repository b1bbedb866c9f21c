"""The partitions of this broker: found when they are asked for, changed as the metadata changes.

A partition that nobody asks for costs nothing: its entry in the metadata image is all there is.
The first request for it opens its log and builds a Partition; from then on it is kept.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.log import CorruptLog, Log, LogDirectory, LogDirFailure, PartitionKey
from barnabas.log.background import Background
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import BrokerRegistration, ConfigResource, PartitionRegistration, TopicImage
from barnabas.raft import METADATA_TOPIC
from barnabas.replication import partition_folders
from barnabas.replication.log_dirs import Disks
from barnabas.replication.flush_scheduler import Flushing
from barnabas.replication.maintenance_tasks import LOOKED_AT_IN_A_STEP, Housekeeping
from barnabas.replication.alter_partition_manager import AskController, IsrChanges
from barnabas.replication.leading import LeadingReplica
from barnabas.replication.log_dir_moves import Moves
from barnabas.replication.partition import Partition
from barnabas.replication.ports import Waiting
from barnabas.replication.replica import Replica
from barnabas.replication.throttle import Side, Throttle
from barnabas.replication.topic_config import BROKER, TOPIC, Settings, TopicRules, rules_of
from barnabas.wire.errors import ErrorCode, KafkaError

CHANGED_AT_ONCE = 16
"""How many folders a metadata change makes or removes right away; housekeeping does the rest."""

_logger = logging.getLogger(__name__)


class Removal(NamedTuple):
    """A deleted partition whose folder is still there, opened or not."""

    topic_id: bytes
    partition: Partition | None


class Partitions:
    """Every replica this broker holds, by topic id or name and by index."""

    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_damaged",
        "_flushing",
        "_housekeeping",
        "_led",
        "_rules",
        "_settings",
        "_to_make",
        "_to_remove",
        "_waiting",
        "disks",
        "image",
        "isr_changes",
        "moves",
        "node_id",
        "replica_lag_max_ms",
        "throttle",
        "unreported",
    )

    def __init__(
        self,
        node_id: int,
        directories: Sequence[LogDirectory],
        settings: Settings,
        image: MetadataImage,
        *,
        waiting: Waiting,
        background: Background,
        ask_controller: AskController,
        clock: Callable[[], int],
        lost_paths: Sequence[str] = (),
    ) -> None:
        self.node_id = node_id
        self.image = image
        self.disks = Disks(
            directories,
            lost_paths=lost_paths,
            cordoned=lambda: settings.broker("cordoned.log.dirs"),
        )
        self.moves = Moves(background, self.lose, self._moved)
        self.unreported: dict[tuple[bytes, int], bytes] = {}
        """Partitions whose directory the metadata does not know yet (AssignReplicasToDirs)."""
        self.replica_lag_max_ms: int = settings.broker("replica.lag.time.max.ms")
        self.throttle = Throttle(Side.LEADER, node_id, settings)
        """What followers that are not in sync may cost."""
        self.throttle.obey(image.configs)
        self._clock = clock
        self.isr_changes = IsrChanges(node_id, ask_controller, self.broker, clock)
        self._led: dict[Partition, None] = {}  # those that others follow
        self._settings = settings
        self._waiting = waiting
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._damaged: dict[tuple[bytes, int], KafkaError] = {}
        self._rules: dict[str, TopicRules] = {}
        self._to_make: dict[tuple[bytes, int], None] = {}
        self._to_remove: dict[tuple[str, int], Removal] = {}
        self._flushing = Flushing(background, self.lose)
        self._housekeeping = Housekeeping(self, settings, background)

    def get(self, topic_id: bytes, index: int) -> Partition:
        """The partition of a topic by its id; KafkaError where there is none here."""
        partition = self._by_id.get((topic_id, index))
        if partition is not None:
            return partition
        topic = self.image.topics.by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has that id.")
        return self._open(topic, index)

    def by_name(self, topic: str, index: int) -> Partition:
        """The partition of a topic by its name; KafkaError where there is none here."""
        partition = self._by_name.get((topic, index))
        if partition is not None:
            return partition
        state = self.image.topics.by_name(topic)
        if state is None:
            raise _unknown(topic, index)
        return self._open(state, index)

    def live(self) -> list[Partition]:
        """The partitions that have been asked for."""
        return list(self._by_id.values())

    def find_live(self, topic: str, index: int) -> Partition | None:
        return self._by_name.get((topic, index))

    def rules_of(self, topic: str) -> TopicRules:
        """What a topic's settings ask for, worked out once per change of them."""
        rules = self._rules.get(topic)
        if rules is None:
            rules = self._rules[topic] = rules_of(topic, self._settings)
        return rules

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Follow the metadata. The settings must have been told of changed configs before."""
        self.image = image
        for topic in delta.topics_deleted.values():
            self._delete(topic)
        self.throttle.obey(delta.configs_changed)
        self._refresh_rules(delta.configs_changed)
        for (topic_id, index), state in delta.partitions_changed.items():
            self._change(topic_id, index, state)
        for _ in zip(range(CHANGED_AT_ONCE), self.catch_up(0), strict=False):
            pass

    def move(self, topic: str, index: int, path: str) -> None:
        """Begin to move a replica to another log directory."""
        target = self.disks.at_path(path)
        partition = self.by_name(topic, index)
        if self.disks.is_cordoned(target.path) and partition.directory is not target:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{target.path} is cordoned: take it off cordoned.log.dirs first.",
            )
        self.moves.begin(partition, target)

    def flush(self, partition: Replica) -> None:
        """Bring a partition's log to the disk, off the loop."""
        self._flushing.flush(partition)

    def lose(self, directory: LogDirectory, failure: OSError) -> None:
        """Its disk refused: the partitions there are offline, all others serve on."""
        if not self.disks.lose(directory, failure):
            return
        for partition in self.live():
            if partition.directory is directory:
                self.moves.cancel(partition)
                self._led.pop(partition, None)
                partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """A broker of the cluster, as the metadata has it."""
        return self.image.brokers.get(broker_id)

    def propose(self, partition: LeadingReplica) -> None:
        """Take to the controller what the partition proposes of who is in sync."""
        self.isr_changes.propose(partition)

    def shrink(self, now_ms: int) -> Iterator[None]:
        """Leave followers out that lag, wherever this broker leads; some partitions a step."""
        for number, partition in enumerate(list(self._led)):
            partition.drop_laggards(now_ms)
            if number % LOOKED_AT_IN_A_STEP == 0:
                yield

    def housekeeping(self, now_ms: int) -> int:
        """A slice of what is due; in how many ms to call again.

        Not before the image is complete: a folder that is not in it is set aside.
        """
        return self._housekeeping.run(now_ms)

    def high_watermarks_in(self, directory: LogDirectory) -> dict[PartitionKey, int]:
        return {
            key: partition.high_watermark
            for key, partition in self._by_name.items()
            if partition.directory is directory
        }

    def close(self, clean: bool = True, *, broker_epoch: int = -1) -> bool:
        """Let go of the directories; a clean stop first brings everything to disk.

        False if one of them refused: its logs are checked at the next start.
        """
        is_clean = clean
        for move in list(self.moves.under_way):
            self.moves.cancel(move)
        for directory in self.disks.directories:
            try:
                directory.close(
                    clean,
                    broker_epoch=broker_epoch,
                    high_watermarks=self.high_watermarks_in(directory),
                )
            except LogDirFailure as failure:
                _logger.error("Not stopped cleanly: %s", failure)
                is_clean = False
        return is_clean

    # Opening

    def _open(self, topic: TopicImage, index: int) -> Partition:
        state = topic.partitions.get(index)
        if state is None:
            raise _unknown(topic.name, index)
        if self.node_id not in state.replicas:
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"broker {self.node_id} has no replica of {topic.name}-{index}.",
            )
        key = (topic.topic_id, index)
        if key in self._damaged:
            raise self._damaged[key]
        self._remove_first(topic.name, index)
        rules = self.rules_of(topic.name)
        log = self._open_log(topic, index, state, rules)
        partition = Partition(
            log,
            rules,
            node_id=self.node_id,
            high_watermark=log.directory.offsets.high_watermarks.get((topic.name, index), 0),
            caretaker=self,
            waiting=self._waiting,
        )
        self._take(partition, state)
        self._by_id[key] = partition
        self._by_name[topic.name, index] = partition
        return partition

    def _open_log(
        self, topic: TopicImage, index: int, state: PartitionRegistration, rules: TopicRules
    ) -> Log:
        directory_id = state.directory_of(self.node_id)
        try:
            return partition_folders.open_log(
                self.disks, topic.name, index, topic.topic_id, directory_id, rules.log
            )
        except LogDirFailure as failure:
            self.lose(self.disks.by_path[failure.directory], failure)
            raise
        except CorruptLog as damage:
            # Not looked at again before a restart: each look would scan the log.
            self._damaged[topic.topic_id, index] = damage
            _logger.error("%s-%d is not served: %s", topic.name, index, damage.message)
            raise

    def _take(self, partition: Partition, state: PartitionRegistration) -> None:
        """Hand a partition what the metadata says of it."""
        try:
            partition.take(state, self._clock())
        except LogDirFailure as failure:
            self.lose(partition.directory, failure)
            return
        if partition.has_followers:
            self._led[partition] = None
        else:
            self._led.pop(partition, None)
        key = (partition.topic_id, partition.index)
        directory_id = partition.directory.directory_id
        if state.directory_of(self.node_id) == directory_id:
            self.unreported.pop(key, None)
        else:
            self.unreported[key] = directory_id

    def _moved(self, partition: Partition, old: Log) -> None:
        old.directory.delete_log(old)
        if partition.state is not None:
            self._take(partition, partition.state)

    # Following the metadata

    def _change(self, topic_id: bytes, index: int, state: PartitionRegistration) -> None:
        partition = self._by_id.get((topic_id, index))
        is_ours = self.node_id in state.replicas
        if partition is not None and is_ours:
            self._take(partition, state)
        elif partition is not None:
            self._forget(partition.topic, index, topic_id, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif is_ours and (state.partition_epoch == 0 or self.node_id in state.adding):
            self._to_make[topic_id, index] = None

    def _delete(self, topic: TopicImage) -> None:
        self._rules.pop(topic.name, None)
        for index, state in topic.partitions.items():
            if self.node_id in state.replicas:
                self._forget(
                    topic.name, index, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )

    def _forget(self, topic: str, index: int, topic_id: bytes, reason: ErrorCode) -> None:
        """The partition is no longer ours: answer so at once, remove its folder in due time."""
        key = (topic_id, index)
        self._to_make.pop(key, None)
        self._damaged.pop(key, None)
        self.unreported.pop(key, None)
        partition = self._by_id.pop(key, None)
        if partition is not None:
            del self._by_name[topic, index]
            self._led.pop(partition, None)
            self.moves.cancel(partition)
            partition.stop(reason)
        self._remove_first(topic, index)
        self._to_remove[topic, index] = Removal(topic_id, partition)

    def _refresh_rules(self, changed: set[ConfigResource]) -> None:
        if any(resource_type == BROKER for resource_type, _ in changed):
            stale: Iterable[str] = list(self._rules)
        else:
            stale = [name for resource_type, name in changed if resource_type == TOPIC]
        for topic in stale:
            before = self._rules.pop(topic, None)
            state = self.image.topics.by_name(topic)
            if before is None or state is None or self.rules_of(topic) == before:
                continue
            for index in state.partitions:
                partition = self._by_name.get((topic, index))
                if partition is not None:
                    partition.obey(self.rules_of(topic), self._clock())

    def catch_up(self, _: int) -> Iterator[None]:
        """Make and remove the folders of partitions that came and went, one a step."""
        while self._to_remove:
            topic, index = next(iter(self._to_remove))
            self._remove_first(topic, index)
            yield
        while self._to_make:
            key = self._to_make.popitem()[0]  # the latest first: a small topic need not wait
            try:
                self.get(*key)
            except (KafkaError, OSError) as failure:
                _logger.error("A new partition has no folder yet: %s", failure)
            yield

    def _remove_first(self, topic: str, index: int) -> None:
        """Remove a deleted partition's folder, before another of that name can be made."""
        removal = self._to_remove.pop((topic, index), None)
        if removal is None:
            return
        try:
            if removal.partition is not None:
                directory: LogDirectory | None = removal.partition.directory
                removal.partition.directory.delete_log(removal.partition.log)
            else:
                delay_ms = self.rules_of(topic).log.delete_delay_ms
                directory = partition_folders.delete(self.disks, topic, index, removal.topic_id, delay_ms)
        except LogDirFailure as failure:
            self.lose(self.disks.by_path[failure.directory], failure)
            return
        if directory is not None:
            self.disks.left(directory)

    def disown_if_stray(self, directory: LogDirectory, topic: str, index: int) -> None:
        """Set a folder aside that the metadata knows nothing of."""
        state = self.image.topics.by_name(topic)
        partition = state.partitions.get(index) if state is not None else None
        is_ours = partition is not None and self.node_id in partition.replicas
        if not is_ours and topic != METADATA_TOPIC and (topic, index) not in self._to_remove:
            partition_folders.disown(directory, topic, index)


def _unknown(topic: str, index: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}."
    )
