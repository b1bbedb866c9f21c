"""DescribeLogDirs (key 35): the log directories of this broker and what lies in them.

v2 flexible; v3 an error for the whole answer; v4 total and usable bytes; v5 cordoned directories.
"""

import asyncio

from barnabas.log import LogDirectory
from barnabas.replication import list_replicas
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

LOOKED_AT_BETWEEN_REQUESTS = 64
"""Partitions nobody has opened are measured on disk: with many, others get their turn."""


async def handle(
    request: DescribeLogDirsRequest, context: RequestContext
) -> DescribeLogDirsResponse:
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    disks = context.broker.partitions.log_dirs
    results = [await _describe(directory, wanted, context) for directory in disks.online()]
    results += [
        DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=path)
        for path in disks.offline_paths
    ]
    return DescribeLogDirsResponse(results=results)


async def _describe(
    directory: LogDirectory, wanted: set[tuple[str, int]] | None, context: RequestContext
) -> DescribeLogDirsResult:
    partitions = context.broker.partitions
    topics: dict[str, list[DescribeLogDirsPartition]] = {}
    try:
        for number, held in enumerate(list_replicas(directory, partitions, wanted), 1):
            topics.setdefault(held.topic, []).append(
                DescribeLogDirsPartition(
                    partition_index=held.partition,
                    partition_size=held.size_bytes,
                    offset_lag=held.lag,
                    is_future_key=held.is_future,
                )
            )
            if number % LOOKED_AT_BETWEEN_REQUESTS == 0:
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
            DescribeLogDirsTopic(name=topic, partitions=held) for topic, held in topics.items()
        ],
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
        is_cordoned=partitions.log_dirs.is_cordoned(directory.path),
    )
