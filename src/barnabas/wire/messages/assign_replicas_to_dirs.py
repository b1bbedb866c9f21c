"""AssignReplicasToDirs (key 73): a broker reports the log directories of its replicas."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, uuid


class AssignReplicasToDirsRequest(Message, api_key=73, versions="0", listeners="controller"):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    directories: list[RequestDirectoryData] = field()


class RequestDirectoryData(Struct):
    id: uuid = field()
    topics: list[RequestTopicData] = field()


class RequestTopicData(Struct):
    topic_id: uuid = field()
    partitions: list[RequestPartitionData] = field()


class RequestPartitionData(Struct):
    partition_index: int32 = field()


class AssignReplicasToDirsResponse(Message, api_key=73, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    directories: list[ResponseDirectoryData] = field()


class ResponseDirectoryData(Struct):
    id: uuid = field()
    topics: list[ResponseTopicData] = field()


class ResponseTopicData(Struct):
    topic_id: uuid = field()
    partitions: list[ResponsePartitionData] = field()


class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
