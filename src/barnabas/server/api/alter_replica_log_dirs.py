"""AlterReplicaLogDirs (key 34): move replicas of this broker between its log directories.

The answer says that the move has begun; DescribeLogDirs shows how far it is. v2 flexible.
"""

from barnabas.server.errors import failure_of
from barnabas.server.request_context import Call
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def handle(request: AlterReplicaLogDirsRequest, call: Call) -> AlterReplicaLogDirsResponse:
    results: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            results.setdefault(topic.name, []).extend(
                _move(topic.name, index, directory.path, call) for index in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(topic_name=topic, partitions=partitions)
            for topic, partitions in results.items()
        ]
    )


def _move(topic: str, index: int, path: str, call: Call) -> AlterReplicaLogDirPartitionResult:
    result = AlterReplicaLogDirPartitionResult(partition_index=index)
    try:
        call.broker.partitions.move(topic, index, path)
    except Exception as failure:
        result.error_code, _ = failure_of(failure, "AlterReplicaLogDirs", call)
    return result
