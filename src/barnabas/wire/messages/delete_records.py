"""DeleteRecords (key 21): move the start of partitions forward.

v2 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DeleteRecordsRequest(Message, api_key=21, versions="0-2", flexible="2+", listeners="broker"):
    topics: list[DeleteRecordsTopic] = field()
    timeout_ms: int32 = field()


class DeleteRecordsTopic(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartition] = field()


class DeleteRecordsPartition(Struct):
    partition_index: int32 = field()
    offset: int64 = field()


class DeleteRecordsResponse(Message, api_key=21, versions="0-2", flexible="2+"):
    throttle_time_ms: int32 = field()
    topics: list[DeleteRecordsTopicResult] = field()


class DeleteRecordsTopicResult(Struct):
    name: string = field()
    partitions: list[DeleteRecordsPartitionResult] = field()


class DeleteRecordsPartitionResult(Struct):
    partition_index: int32 = field()
    low_watermark: int64 = field()
    error_code: int16 = field()
