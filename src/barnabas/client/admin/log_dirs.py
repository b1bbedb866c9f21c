"""Log directories: what lies in them, and moving replicas between those of a broker."""

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, outcome_of, require_list
from barnabas.client.admin.routes import one_by_one, topics_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.values import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)


@dataclass(slots=True, frozen=True)
class TopicPartitionReplica:
    """The copy of a partition that a broker has."""

    topic: str
    partition: int
    broker_id: int


@dataclass(slots=True, frozen=True)
class ReplicaInfo:
    """A copy in a directory: its size, how far it is behind, and whether it is only moving in."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(slots=True, frozen=True)
class LogDirDescription:
    """A directory; -1 for bytes that the broker does not tell."""

    error: KafkaError | None
    replica_infos: dict[TopicPartition, ReplicaInfo]
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False


@dataclass(slots=True, frozen=True)
class ReplicaLogDirInfo:
    """Where a replica is, and where it is moving to; None and -1 for nowhere."""

    current_replica_log_dir: str | None = None
    current_replica_offset_lag: int = -1
    future_replica_log_dir: str | None = None
    future_replica_offset_lag: int = -1


LogDirs = dict[str, LogDirDescription]


class LogDirCalls(Calls):
    def describe_log_dirs(
        self, broker_ids: list[int], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[int, LogDirs]]:
        """The directories of brokers by their paths, and the replicas in them."""
        require_list("broker_ids", broker_ids, int)
        return self._describe_log_dirs(broker_ids, None, self._deadline(request_timeout))

    async def _describe_log_dirs(
        self,
        broker_ids: Iterable[int],
        topics: Mapping[int, list[DescribableLogDirTopic]] | None,
        deadline: Deadline,
    ) -> Results[int, LogDirs]:
        async def described(node: int | None, broker: int) -> LogDirs | KafkaError:
            request = DescribeLogDirsRequest(topics=None if topics is None else topics[broker])
            response = await self._routes.ask(request, node, deadline=deadline)
            if response.error_code:
                return told_by_broker(response.error_code)
            return {each.log_dir: _described(each) for each in response.results}

        brokers = {broker: broker for broker in broker_ids}
        return Results(await self._routes.by_broker(brokers, one_by_one(described), deadline))

    def describe_replica_log_dirs(
        self, replicas: list[TopicPartitionReplica], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[TopicPartitionReplica, ReplicaLogDirInfo]]:
        """In which directories replicas are."""
        require_list("replicas", replicas, TopicPartitionReplica)
        return self._describe_replica_log_dirs(replicas, self._deadline(request_timeout))

    async def _describe_replica_log_dirs(
        self, replicas: list[TopicPartitionReplica], deadline: Deadline
    ) -> Results[TopicPartitionReplica, ReplicaLogDirInfo]:
        topics = {
            broker: [
                DescribableLogDirTopic(topic=topic, partitions=indexes)
                for topic, indexes in topics_of((r.topic, r.partition) for r in of_broker).items()
            ]
            for broker, of_broker in _by_broker(replicas).items()
        }
        told = await self._describe_log_dirs(topics, topics, deadline)
        where = {broker: _places(told[broker]) for broker in told if broker not in told.errors}
        return Results(
            {
                replica: told.errors.get(replica.broker_id)
                or where[replica.broker_id].get(
                    TopicPartition(replica.topic, replica.partition), ReplicaLogDirInfo()
                )
                for replica in replicas
            }
        )

    def alter_replica_log_dirs(
        self,
        replica_assignment: dict[TopicPartitionReplica, str],
        *,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[TopicPartitionReplica, None]]:
        """Have brokers move replicas into the directories of these paths."""
        require_list("replica_assignment", list(replica_assignment), TopicPartitionReplica)
        return self._alter_replica_log_dirs(replica_assignment, self._deadline(request_timeout))

    async def _alter_replica_log_dirs(
        self, assignment: dict[TopicPartitionReplica, str], deadline: Deadline
    ) -> Results[TopicPartitionReplica, None]:
        async def exchange(
            node: int | None, replicas: list[TopicPartitionReplica]
        ) -> Mapping[TopicPartitionReplica, KafkaError | None]:
            assert node is not None, "replicas are on brokers"
            paths: dict[str, list[TopicPartitionReplica]] = {}
            for replica in replicas:
                paths.setdefault(assignment[replica], []).append(replica)
            request = AlterReplicaLogDirsRequest(
                dirs=[_moved(path, moving) for path, moving in paths.items()]
            )
            response = await self._routes.ask(request, node, deadline=deadline)
            return {
                TopicPartitionReplica(topic.topic_name, each.partition_index, node): outcome_of(
                    each.error_code
                )
                for topic in response.results
                for each in topic.partitions
            }

        brokers = {replica: replica.broker_id for replica in assignment}
        return Results(await self._routes.by_broker(brokers, exchange, deadline))


def _by_broker(
    replicas: Iterable[TopicPartitionReplica],
) -> dict[int, list[TopicPartitionReplica]]:
    by_broker: dict[int, list[TopicPartitionReplica]] = {}
    for replica in replicas:
        by_broker.setdefault(replica.broker_id, []).append(replica)
    return by_broker


def _moved(path: str, replicas: list[TopicPartitionReplica]) -> AlterReplicaLogDir:
    by_topic = topics_of((replica.topic, replica.partition) for replica in replicas)
    return AlterReplicaLogDir(
        path=path,
        topics=[
            AlterReplicaLogDirTopic(name=topic, partitions=indexes)
            for topic, indexes in by_topic.items()
        ],
    )


def _described(directory: DescribeLogDirsResult) -> LogDirDescription:
    return LogDirDescription(
        outcome_of(directory.error_code),
        {
            TopicPartition(topic.name, each.partition_index): ReplicaInfo(
                each.partition_size, each.offset_lag, each.is_future_key
            )
            for topic in directory.topics
            for each in topic.partitions
        },
        directory.total_bytes,
        directory.usable_bytes,
        directory.is_cordoned,
    )


def _places(directories: LogDirs) -> dict[TopicPartition, ReplicaLogDirInfo]:
    """Where each replica of a broker is; a directory that has failed has none."""
    now: dict[TopicPartition, tuple[str, int]] = {}
    soon: dict[TopicPartition, tuple[str, int]] = {}
    for path, directory in directories.items():
        if directory.error is not None and directory.error != ErrorCode.KAFKA_STORAGE_ERROR:
            continue
        for partition, replica in directory.replica_infos.items():
            place = soon if replica.is_future else now
            place[partition] = path, replica.offset_lag
    nowhere = (None, -1)
    return {
        partition: ReplicaLogDirInfo(*now.get(partition, nowhere), *soon.get(partition, nowhere))
        for partition in now.keys() | soon.keys()
    }
