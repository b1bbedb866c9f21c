"""The APIs of log directories.

DescribeLogDirs (key 35): the log directories of a broker, their replicas and free space.
v2 flexible; v3 an error for the whole response; v4 total and usable bytes; v5 cordoned directories
(KIP-1066).

AlterReplicaLogDirs (key 34): move replicas between the log directories of a broker.
v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DescribeLogDirsRequest(
    Message, api_key=35, versions="1-5", flexible="2+", listeners="broker"
):
    topics: list[DescribableLogDirTopic] | None = field()


class DescribableLogDirTopic(Struct):
    topic: string = field()
    partitions: list[int32] = field()


class DescribeLogDirsResponse(Message, api_key=35, versions="1-5", flexible="2+"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field("3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field()


class DescribeLogDirsResult(Struct):
    error_code: int16 = field()
    log_dir: string = field()
    topics: list[DescribeLogDirsTopic] = field()
    total_bytes: int64 = field("4+", default=-1, ignorable=True)
    usable_bytes: int64 = field("4+", default=-1, ignorable=True)
    is_cordoned: bool = field("5+", ignorable=True)


class DescribeLogDirsTopic(Struct):
    name: string = field()
    partitions: list[DescribeLogDirsPartition] = field()


class DescribeLogDirsPartition(Struct):
    partition_index: int32 = field()
    partition_size: int64 = field()
    offset_lag: int64 = field()
    is_future_key: bool = field()


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
