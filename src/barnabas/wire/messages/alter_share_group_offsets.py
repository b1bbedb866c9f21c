"""AlterShareGroupOffsets (key 91): move the start offsets of a share group."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class AlterShareGroupOffsetsRequest(
    Message, api_key=91, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[AlterShareGroupOffsetsRequestTopic] = field()


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: string = field()
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field()


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int32 = field()
    start_offset: int64 = field()


class AlterShareGroupOffsetsResponse(Message, api_key=91, versions="0", flexible="0+"):
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
