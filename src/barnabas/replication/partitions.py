"""The partitions of this broker, opened on first use and changed as the metadata changes.

A partition that is never used costs nothing but its entry in the metadata image. The first request
for it opens its log and creates a Partition, which is kept from then on.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from barnabas.log import CorruptLog, Log, LogDirectory, LogDirFailure, PartitionKey
from barnabas.log.cleaner.log_cleaner import LogCleaner
from barnabas.log.flush import BackgroundExecutor
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import (
    BrokerRegistration,
    ConfigResource,
    PartitionRegistration,
    TopicImage,
)
from barnabas.raft import METADATA_TOPIC
from barnabas.replication import partition_folders
from barnabas.replication.alter_partition_manager import AlterPartitionManager, SendToController
from barnabas.replication.compacted_partitions import CompactedPartitions
from barnabas.replication.log_dirs import LogDirs
from barnabas.replication.maintenance_tasks import (
    CHECKED_PER_STEP,
    FlushScheduler,
    MaintenanceTasks,
)
from barnabas.replication.partition import Partition
from barnabas.replication.ports import DelayedOperations
from barnabas.replication.replica_moves import ReplicaMoves
from barnabas.replication.throttle import ReplicationThrottle, ThrottleSide
from barnabas.replication.topic_config import (
    BROKER,
    TOPIC,
    ConfigProvider,
    TopicConfig,
    resolve_topic_config,
)
from barnabas.wire.errors import ErrorCode, KafkaError

FOLDERS_PER_DELTA = 16
"""How many folders a metadata change creates or deletes at once; a task does the rest."""

_logger = logging.getLogger(__name__)


class PendingRemoval(NamedTuple):
    """A deleted partition whose folder still exists, opened or not."""

    topic_id: bytes
    partition: Partition | None


class Partitions:
    """Every replica of this broker, by topic id or name and by index (Kafka's ReplicaManager)."""

    __slots__ = (
        "_by_id",
        "_by_name",
        "_clock",
        "_configs",
        "_corrupt",
        "_flush_scheduler",
        "_leading",
        "_maintenance_tasks",
        "_purgatory",
        "_settings",
        "_to_create",
        "_to_remove",
        "alter_partition_manager",
        "cleaner",
        "image",
        "log_dirs",
        "node_id",
        "replica_lag_max_ms",
        "replica_moves",
        "throttle",
        "unassigned_dirs",
    )

    def __init__(
        self,
        node_id: int,
        directories: Sequence[LogDirectory],
        settings: ConfigProvider,
        image: MetadataImage,
        *,
        purgatory: DelayedOperations,
        background: BackgroundExecutor,
        cleaner_background: BackgroundExecutor | None = None,
        send_to_controller: SendToController,
        clock: Callable[[], int],
        offline_paths: Sequence[str] = (),
    ) -> None:
        self.node_id = node_id
        self.image = image
        self.log_dirs = LogDirs(
            directories,
            offline_paths=offline_paths,
            cordoned=lambda: settings.broker("cordoned.log.dirs"),
        )
        self.replica_moves = ReplicaMoves(background, self.handle_log_dir_failure, self._on_moved)
        self.unassigned_dirs: dict[tuple[bytes, int], bytes] = {}
        """Partitions whose directory the metadata does not know yet (AssignReplicasToDirs)."""
        self.replica_lag_max_ms: int = settings.broker("replica.lag.time.max.ms")
        self.throttle = ReplicationThrottle(ThrottleSide.LEADER, node_id, settings)
        """Limits the bytes that out-of-sync followers fetch."""
        self.throttle.apply_configs(image.configs)
        self._clock = clock
        self.alter_partition_manager = AlterPartitionManager(
            node_id, send_to_controller, self.broker, clock
        )
        self._leading: dict[Partition, None] = {}  # those that have followers
        self._settings = settings
        self._purgatory = purgatory
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._corrupt: dict[tuple[bytes, int], KafkaError] = {}
        self._configs: dict[str, TopicConfig] = {}
        self._to_create: dict[tuple[bytes, int], None] = {}
        self._to_remove: dict[tuple[str, int], PendingRemoval] = {}
        self._flush_scheduler = FlushScheduler(background, self.handle_log_dir_failure)
        self.cleaner = LogCleaner(
            CompactedPartitions(self, clock),
            settings.broker,
            cleaner_background or background,
            clock,
        )
        self._maintenance_tasks = MaintenanceTasks(self, settings, background)

    def get(self, topic_id: bytes, index: int) -> Partition:
        """Returns a partition by topic id. Raises KafkaError if this broker does not have it."""
        partition = self._by_id.get((topic_id, index))
        if partition is not None:
            return partition
        topic = self.image.topics.by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has that id.")
        return self._open(topic, index)

    def get_by_name(self, topic: str, index: int) -> Partition:
        """Returns a partition by topic name. Raises KafkaError if this broker does not have it."""
        partition = self._by_name.get((topic, index))
        if partition is not None:
            return partition
        state = self.image.topics.by_name(topic)
        if state is None:
            raise _unknown(topic, index)
        return self._open(state, index)

    def opened(self) -> list[Partition]:
        """Returns the partitions that were used since the start."""
        return list(self._by_id.values())

    def find_opened(self, topic: str, index: int) -> Partition | None:
        return self._by_name.get((topic, index))

    def find_opened_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        return self._by_id.get((topic_id, index))

    def config_of(self, topic: str) -> TopicConfig:
        """Returns the settings of a topic, resolved once per change."""
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = resolve_topic_config(topic, self._settings)
        return config

    def apply_delta(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies a metadata change. The config provider must have the changed configs already."""
        self.image = image
        for topic in delta.topics_deleted.values():
            self._delete_topic(topic)
        self.throttle.apply_configs(delta.configs_changed)
        self._refresh_configs(delta.configs_changed)
        for (topic_id, index), state in delta.partitions_changed.items():
            self._change(topic_id, index, state)
        for _ in zip(range(FOLDERS_PER_DELTA), self.create_and_delete_folders(0), strict=False):
            pass

    def move_to_log_dir(self, topic: str, index: int, path: str) -> None:
        """Starts to move a replica to another log directory."""
        target = self.log_dirs.at_path(path)
        partition = self.get_by_name(topic, index)
        if self.log_dirs.is_cordoned(target.path) and partition.directory is not target:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{target.path} is cordoned: remove it from cordoned.log.dirs first.",
            )
        self.replica_moves.start(partition, target)

    def request_flush(self, partition: Partition) -> None:
        """Flushes a partition's log in the background."""
        self._flush_scheduler.request(partition)

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        """Takes the partitions of a failed directory offline; all others continue."""
        if not self.log_dirs.mark_offline(directory, failure):
            return
        for partition in self.opened():
            if partition.directory is directory:
                self.replica_moves.cancel(partition)
                self._leading.pop(partition, None)
                partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        """Returns a broker of the cluster, as the metadata has it."""
        return self.image.brokers.get(broker_id)

    def submit_isr_change(self, partition: Partition) -> None:
        """Sends the partition's pending ISR change to the controller."""
        self.alter_partition_manager.submit(partition)

    def shrink_isrs(self, now_ms: int) -> Iterator[None]:
        """Shrinks the ISR of every partition with lagging followers; some partitions per step."""
        for number, partition in enumerate(list(self._leading)):
            if partition.leader_state is not None:
                partition.leader_state.shrink_isr(now_ms)
            if number % CHECKED_PER_STEP == 0:
                yield

    def run_maintenance(self, now_ms: int) -> int:
        """Runs a slice of the periodic tasks; returns in how many ms to call again.

        Must not be called before the image is complete: folders of unknown topics are marked stray.
        """
        return self._maintenance_tasks.run(now_ms)

    def high_watermarks_in(self, directory: LogDirectory) -> dict[PartitionKey, int]:
        return {
            key: partition.high_watermark
            for key, partition in self._by_name.items()
            if partition.directory is directory
        }

    def close(self, clean: bool = True, *, broker_epoch: int = -1) -> bool:
        """Closes the directories; a clean shutdown flushes everything first.

        Returns False if one of them failed: its logs are recovered at the next start.
        """
        is_clean = clean
        self.cleaner.close()
        for move in list(self.replica_moves.in_progress):
            self.replica_moves.cancel(move)
        for directory in self.log_dirs.directories:
            try:
                directory.close(
                    clean,
                    broker_epoch=broker_epoch,
                    high_watermarks=self.high_watermarks_in(directory),
                )
            except LogDirFailure as failure:
                _logger.error("Not shut down cleanly: %s", failure)
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
        if key in self._corrupt:
            raise self._corrupt[key]
        self._delete_folder(topic.name, index)
        config = self.config_of(topic.name)
        log = self._open_log(topic, index, state, config)
        partition = Partition(
            log,
            config,
            node_id=self.node_id,
            high_watermark=log.directory.checkpoints.high_watermarks.get((topic.name, index), 0),
            host=self,
            purgatory=self._purgatory,
        )
        self._apply_state(partition, state)
        self._by_id[key] = partition
        self._by_name[topic.name, index] = partition
        return partition

    def _open_log(
        self, topic: TopicImage, index: int, state: PartitionRegistration, config: TopicConfig
    ) -> Log:
        directory_id = state.directory_of(self.node_id)
        try:
            return partition_folders.open_log(
                self.log_dirs, topic.name, index, topic.topic_id, directory_id, config.log
            )
        except LogDirFailure as failure:
            self.handle_log_dir_failure(self.log_dirs.by_path[failure.directory], failure)
            raise
        except CorruptLog as damage:
            # Not opened again before a restart: each attempt would scan the log.
            self._corrupt[topic.topic_id, index] = damage
            _logger.error("%s-%d is not served: %s", topic.name, index, damage.message)
            raise

    def _apply_state(self, partition: Partition, state: PartitionRegistration) -> None:
        """Applies to a partition what the metadata says about it."""
        try:
            partition.make_leader_or_follower(state, self._clock())
        except LogDirFailure as failure:
            self.handle_log_dir_failure(partition.directory, failure)
            return
        if partition.leader_state is not None:
            self._leading[partition] = None
        else:
            self._leading.pop(partition, None)
        key = (partition.topic_id, partition.index)
        directory_id = partition.directory.directory_id
        if state.directory_of(self.node_id) == directory_id:
            self.unassigned_dirs.pop(key, None)
        else:
            self.unassigned_dirs[key] = directory_id

    def _on_moved(self, partition: Partition, old: Log) -> None:
        key = (old.topic, old.partition)
        first_dirty_offset = old.directory.cleaner_offsets.get(key)
        if first_dirty_offset is not None:
            partition.directory.cleaner_offsets.put(key, first_dirty_offset)
        old.directory.delete_log(old)
        if partition.state is not None:
            self._apply_state(partition, partition.state)

    # Applying the metadata

    def _change(self, topic_id: bytes, index: int, state: PartitionRegistration) -> None:
        partition = self._by_id.get((topic_id, index))
        is_hosted = self.node_id in state.replicas
        if partition is not None and is_hosted:
            self._apply_state(partition, state)
        elif partition is not None:
            self._remove(partition.topic, index, topic_id, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        elif is_hosted and (state.partition_epoch == 0 or self.node_id in state.adding):
            self._to_create[topic_id, index] = None

    def _delete_topic(self, topic: TopicImage) -> None:
        self._configs.pop(topic.name, None)
        for index, state in topic.partitions.items():
            if self.node_id in state.replicas:
                self._remove(
                    topic.name, index, topic.topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )

    def _remove(self, topic: str, index: int, topic_id: bytes, reason: ErrorCode) -> None:
        """Stops serving a partition that this broker no longer has; its folder is deleted later."""
        key = (topic_id, index)
        self._to_create.pop(key, None)
        self._corrupt.pop(key, None)
        self.unassigned_dirs.pop(key, None)
        partition = self._by_id.pop(key, None)
        if partition is not None:
            del self._by_name[topic, index]
            self._leading.pop(partition, None)
            self.replica_moves.cancel(partition)
            partition.stop(reason)
        self._delete_folder(topic, index)
        self._to_remove[topic, index] = PendingRemoval(topic_id, partition)

    def _refresh_configs(self, changed: set[ConfigResource]) -> None:
        if any(resource_type == BROKER for resource_type, _ in changed):
            stale: Iterable[str] = list(self._configs)
        else:
            stale = [name for resource_type, name in changed if resource_type == TOPIC]
        for topic in stale:
            before = self._configs.pop(topic, None)
            state = self.image.topics.by_name(topic)
            if before is None or state is None or self.config_of(topic) == before:
                continue
            for index in state.partitions:
                partition = self._by_name.get((topic, index))
                if partition is not None:
                    partition.apply_config(self.config_of(topic), self._clock())

    def create_and_delete_folders(self, _: int) -> Iterator[None]:
        """Creates and deletes the folders of partitions, one per step."""
        while self._to_remove:
            topic, index = next(iter(self._to_remove))
            self._delete_folder(topic, index)
            yield
        while self._to_create:
            # The newest first: a small topic need not wait for a large one.
            key = self._to_create.popitem()[0]
            try:
                self.get(*key)
            except (KafkaError, OSError) as failure:
                _logger.error("The folder of a new partition was not created: %s", failure)
            yield

    def _delete_folder(self, topic: str, index: int) -> None:
        """Deletes the folder of a deleted partition, before another of that name is created."""
        removal = self._to_remove.pop((topic, index), None)
        if removal is None:
            return
        try:
            if removal.partition is not None:
                directory: LogDirectory | None = removal.partition.directory
                removal.partition.directory.delete_log(removal.partition.log)
            else:
                delay_ms = self.config_of(topic).log.delete_delay_ms
                directory = partition_folders.delete_folder(
                    self.log_dirs, topic, index, removal.topic_id, delay_ms
                )
        except LogDirFailure as failure:
            self.handle_log_dir_failure(self.log_dirs.by_path[failure.directory], failure)
            return
        if directory is not None:
            self.log_dirs.on_partition_removed(directory)

    def mark_if_stray(self, directory: LogDirectory, topic: str, index: int) -> None:
        """Marks a folder as stray if the metadata has no such partition."""
        state = self.image.topics.by_name(topic)
        partition = state.partitions.get(index) if state is not None else None
        is_hosted = partition is not None and self.node_id in partition.replicas
        if not is_hosted and topic != METADATA_TOPIC and (topic, index) not in self._to_remove:
            partition_folders.mark_stray(directory, topic, index)


def _unknown(topic: str, index: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}."
    )
