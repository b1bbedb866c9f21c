"""AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker.

v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class AlterReplicaLogDirsRequest(
    Message, api_key=34, versions="1-2", flexible="2+", listeners="broker"
):
    dirs: list[AlterReplicaLogDir] = field()


class AlterReplicaLogDir(Struct):
    path: string = field()
    topics: list[AlterReplicaLogDirTopic] = field()


class AlterReplicaLogDirTopic(Struct):
    name: string = field()
    partitions: list[int32] = field()


class AlterReplicaLogDirsResponse(Message, api_key=34, versions="1-2", flexible="2+"):
    throttle_time_ms: int32 = field()
    results: list[AlterReplicaLogDirTopicResult] = field()


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: string = field()
    partitions: list[AlterReplicaLogDirPartitionResult] = field()


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
