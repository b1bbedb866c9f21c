"""Log directories: describe them, and move replicas between those of a broker."""

from collections import defaultdict
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import by_topic
from barnabas.client.admin.requests import UNSET, AdminRequests, one_request_per_item, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.extensions import get_compaction_status, request_compaction_status
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@dataclass(slots=True, frozen=True)
class TopicPartitionReplica:
    """The replica of a partition on a broker."""

    topic: str
    partition: int
    broker_id: int


@dataclass(slots=True, frozen=True)
class ReplicaCompaction:
    """How far the log of a replica is compacted. Only brokers of Barnabas report it."""

    dirty_ratio: float | None
    """The share of its closed segments that is not cleaned yet; None if the log is damaged."""
    last_cleaned: int | None
    """When it was last cleaned, in ms since 1970; None if it was not since the broker started."""
    uncleanable_reason: str | None
    """Why it is not cleaned any more; None if it is."""


@dataclass(slots=True, frozen=True)
class ReplicaInfo:
    """A replica in a directory: its size, its lag, and whether it is moving in (a future log).

    `compaction` is None if the topic is not compacted, or the broker does not report it.
    """

    size: int
    offset_lag: int
    is_future: bool
    compaction: ReplicaCompaction | None = None


@dataclass(slots=True, frozen=True)
class LogDirDescription:
    """A log directory; bytes are -1 if the broker does not report them."""

    error: KafkaError | None
    replica_infos: dict[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@dataclass(slots=True, frozen=True)
class ReplicaLogDirInfo:
    """The current and future log directory of a replica; None and -1 if there is none.

    `compaction` is None if the topic is not compacted, or the broker does not report it.
    """

    current_replica_log_dir: str | None = None
    current_replica_offset_lag: int = -1
    future_replica_log_dir: str | None = None
    future_replica_offset_lag: int = -1
    compaction: ReplicaCompaction | None = None


LogDirs = dict[str, LogDirDescription]


def describe_log_dirs(
    admin: AdminRequests, broker_ids: list[int], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[int, LogDirs]]:
    """Returns the log directories of brokers with their replicas, by broker id and path."""
    require_list("broker_ids", broker_ids, int)
    return _describe_log_dirs(admin, broker_ids, None, admin.deadline(request_timeout))


async def _describe_log_dirs(
    admin: AdminRequests,
    broker_ids: Iterable[int],
    topics: Mapping[int, list[DescribableLogDirTopic]] | None,
    deadline: Deadline,
) -> Results[int, LogDirs]:
    async def described(node: int | None, broker: int) -> LogDirs | KafkaError:
        request = DescribeLogDirsRequest(topics=None if topics is None else topics[broker])
        request_compaction_status(request)
        response = await admin.send(request, node, deadline=deadline)
        return error_of(response) or {
            directory.log_dir: _description(directory) for directory in response.results
        }

    brokers = {broker: broker for broker in broker_ids}
    return await admin.route_to_brokers(brokers, one_request_per_item(described), deadline)


def describe_replica_log_dirs(
    admin: AdminRequests, replicas: list[TopicPartitionReplica], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[TopicPartitionReplica, ReplicaLogDirInfo]]:
    """Returns the log directories that hold replicas, by replica."""
    require_list("replicas", replicas, TopicPartitionReplica)
    return _describe_replica_log_dirs(admin, replicas, admin.deadline(request_timeout))


async def _describe_replica_log_dirs(
    admin: AdminRequests, replicas: list[TopicPartitionReplica], deadline: Deadline
) -> Results[TopicPartitionReplica, ReplicaLogDirInfo]:
    by_broker: defaultdict[int, list[TopicPartitionReplica]] = defaultdict(list)
    for replica in replicas:
        by_broker[replica.broker_id].append(replica)
    topics = {
        broker: [
            DescribableLogDirTopic(topic=topic, partitions=[r.partition for r in of_topic])
            for topic, of_topic in by_topic(of_broker).items()
        ]
        for broker, of_broker in by_broker.items()
    }
    described = await _describe_log_dirs(admin, topics, topics, deadline)
    replica_dirs = {
        broker: _replica_log_dirs(described[broker])
        for broker in described
        if broker not in described.errors
    }
    return Results(
        {
            replica: described.errors.get(replica.broker_id)
            or replica_dirs[replica.broker_id].get(
                TopicPartition(replica.topic, replica.partition), ReplicaLogDirInfo()
            )
            for replica in replicas
        }
    )


def alter_replica_log_dirs(
    admin: AdminRequests,
    replica_assignment: dict[TopicPartitionReplica, str],
    *,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartitionReplica, None]]:
    """Moves replicas to other log directories of their brokers; results are by replica."""
    require_list("replica_assignment", list(replica_assignment), TopicPartitionReplica)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[TopicPartitionReplica]
    ) -> Mapping[TopicPartitionReplica, KafkaError | None]:
        assert node is not None, "replicas are on brokers"
        paths: defaultdict[str, list[TopicPartitionReplica]] = defaultdict(list)
        for replica in batch:
            paths[replica_assignment[replica]].append(replica)
        request = AlterReplicaLogDirsRequest(
            dirs=[_alteration(path, moving) for path, moving in paths.items()]
        )
        response = await admin.send(request, node, deadline=deadline)
        return {
            TopicPartitionReplica(topic.topic_name, partition.partition_index, node): error_of(
                partition
            )
            for topic in response.results
            for partition in topic.partitions
        }

    brokers = {replica: replica.broker_id for replica in replica_assignment}
    return admin.route_to_brokers(brokers, exchange, deadline)


def _alteration(path: str, replicas: list[TopicPartitionReplica]) -> AlterReplicaLogDir:
    return AlterReplicaLogDir(
        path=path,
        topics=[
            AlterReplicaLogDirTopic(name=topic, partitions=[r.partition for r in of_topic])
            for topic, of_topic in by_topic(replicas).items()
        ],
    )


def _description(directory: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        error_of(directory),
        {
            TopicPartition(topic.name, partition.partition_index): ReplicaInfo(
                partition.partition_size,
                partition.offset_lag,
                partition.is_future_key,
                _compaction(partition),
            )
            for topic in directory.topics
            for partition in topic.partitions
        },
        directory.total_bytes,
        directory.usable_bytes,
        directory.is_cordoned,
    )


def _compaction(replica: DescribeLogDirsPartition) -> ReplicaCompaction | None:
    status = get_compaction_status(replica)
    if status is None:
        return None
    return ReplicaCompaction(
        status.dirty_ratio if status.dirty_ratio >= 0 else None,
        status.last_cleaned_ms if status.last_cleaned_ms >= 0 else None,
        status.uncleanable_reason or None,
    )


def _replica_log_dirs(directories: LogDirs) -> dict[TopicPartition, ReplicaLogDirInfo]:
    """Returns the directories of a broker's replicas; an offline directory has no replicas."""
    current: dict[TopicPartition, tuple[str | None, int]] = {}
    future: dict[TopicPartition, tuple[str | None, int]] = {}
    compaction: dict[TopicPartition, ReplicaCompaction | None] = {}
    for log_dir, directory in directories.items():
        if directory.error is not None and directory.error != ErrorCode.KAFKA_STORAGE_ERROR:
            continue
        for partition, replica in directory.replica_infos.items():
            target = future if replica.is_future else current
            target[partition] = log_dir, replica.offset_lag
            if not replica.is_future:
                compaction[partition] = replica.compaction
    none = (None, -1)
    infos = {}
    for partition in current.keys() | future.keys():
        path, lag = current.get(partition, none)
        future_path, future_lag = future.get(partition, none)
        infos[partition] = ReplicaLogDirInfo(
            path, lag, future_path, future_lag, compaction.get(partition)
        )
    return infos
