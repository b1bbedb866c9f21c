"""The APIs of the offsets of share groups.

DescribeShareGroupOffsets (key 90): the start offsets of share groups.
v1 lag.

AlterShareGroupOffsets (key 91): move the start offsets of a share group.

DeleteShareGroupOffsets (key 92): delete the offsets of a share group by topic.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class DescribeShareGroupOffsetsRequest(Message, api_key=90, versions="0-1", listeners="broker"):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field()


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: string = field()
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field()


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()
    partitions: list[int32] = field()


class DescribeShareGroupOffsetsResponse(Message, api_key=90, versions="0-1"):
    throttle_time_ms: int32 = field()
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field()


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: string = field()
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field()


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int32 = field()
    start_offset: int64 = field()
    leader_epoch: int32 = field()
    lag: int64 = field("1+", default=-1, ignorable=True)
    error_code: int16 = field()
    error_message: string | None = field(default=None)


class AlterShareGroupOffsetsRequest(Message, api_key=91, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[AlterShareGroupOffsetsRequestTopic] = field()


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field()


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int32 = field()
    start_offset: int64 = field()


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field()


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field()


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


class DeleteShareGroupOffsetsRequest(Message, api_key=92, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field()


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()


class DeleteShareGroupOffsetsResponse(Message, api_key=92, versions="0"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field()


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: string = field()
    topic_id: uuid = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
