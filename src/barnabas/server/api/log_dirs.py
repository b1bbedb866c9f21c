"""The log directories of this broker: describing them, and moving replicas between them."""

import asyncio
from contextlib import suppress

from barnabas.log import LogDirectory
from barnabas.replication import Partitions, list_replicas
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.extensions import (
    CompactionStatus,
    put_compaction_status,
    requests_compaction_status,
)
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

REPLICAS_PER_TURN = 64
"""Partitions that are not open are measured on disk: other requests have their turn in between."""


async def handle_describe(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    """DescribeLogDirs (key 35): the log directories of this broker and their replicas.

    v2 flexible; v3 an error for the whole response; v4 total and usable bytes; v5 cordoned
    directories. With a tag of ours in the request: the compaction status of replicas.
    """
    context.require_allowed(AclOperation.DESCRIBE, CLUSTER)
    requested = None
    if request.topics is not None:
        requested = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    log_dirs = context.broker.partitions.log_dirs
    compaction = requests_compaction_status(request)
    results = [
        await _describe(directory, requested, compaction, context)
        for directory in log_dirs.online()
    ]
    results += [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
        for path in log_dirs.offline_paths
    ]
    return DescribeLogDirsResponse(results=results)


async def _describe(
    directory: LogDirectory,
    requested: set[tuple[str, int]] | None,
    compaction: bool,
    context: RequestContext,
) -> DescribeLogDirsResult:
    partitions = context.broker.partitions
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    try:
        for number, replica in enumerate(list_replicas(directory, partitions, requested), 1):
            described = DescribeLogDirsPartition(
                partition_index=replica.partition,
                partition_size=replica.size_bytes,
                offset_lag=replica.lag,
                is_future_key=replica.is_future,
            )
            if compaction and not replica.is_future:
                _add_compaction_status(described, replica.topic, partitions)
            topics.setdefault(replica.topic, []).append(described)
            if number % REPLICAS_PER_TURN == 0:
                await asyncio.sleep(0)
        total_bytes, usable_bytes = directory.total_bytes, directory.usable_bytes
    except OSError as failure:
        partitions.handle_log_dir_failure(directory, failure)
        return DescribeLogDirsResult(
            error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path
        )
    return DescribeLogDirsResult(
        log_dir=directory.path,
        topics=[
            DescribeLogDirsTopic(name=topic, partitions=replica)
            for topic, replica in topics.items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=partitions.log_dirs.is_cordoned(directory.path),
    )


def _add_compaction_status(
    described: DescribeLogDirsPartition, topic: str, partitions: Partitions
) -> None:
    """Adds the status of a compacted log. One that nobody has used yet is not opened for it."""
    partition = partitions.find_opened(topic, described.partition_index)
    if partition is None or not partition.log.config.compact:
        return
    state = partition.log.compaction_state()
    status = CompactionStatus(
        dirty_ratio=-1.0,  # unknown
        last_cleaned_ms=state.last_cleaned_ms,
        uncleanable_reason=state.uncleanable_reason,
    )
    with suppress(KafkaError):  # a damaged log
        cleanable = partitions.cleaner.cleanable_range(partition.log, partition.last_stable_offset)
        status.dirty_ratio = cleanable.dirty_ratio
    put_compaction_status(described, status)


async def handle_alter(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
    """AlterReplicaLogDirs (key 34): move replicas of this broker between its log directories.

    The response confirms that the move has started; DescribeLogDirs reports its progress.
    v2 flexible.
    """
    context.require_allowed(AclOperation.ALTER, CLUSTER)
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                _move(topic.name, index, directory.path, context) for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


def _move(
    topic: str, index: int, path: str, context: RequestContext
) -> AlterReplicaLogDirPartitionResult:
    result = AlterReplicaLogDirPartitionResult(partition_index=index)
    try:
        context.broker.partitions.move_to_log_dir(topic, index, path)
    except Exception as failure:
        result.error_code, _ = error_of(failure, "AlterReplicaLogDirs", context)
    return result
