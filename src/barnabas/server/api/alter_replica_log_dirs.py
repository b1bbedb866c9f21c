"""AlterReplicaLogDirs (key 34): move replicas of this broker between its log directories.

The response confirms that the move has started; DescribeLogDirs reports its progress. v2 flexible.
"""

from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(
    request: AlterReplicaLogDirsRequest, context: RequestContext
) -> AlterReplicaLogDirsResponse:
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
