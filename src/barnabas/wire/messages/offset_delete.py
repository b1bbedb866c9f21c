"""OffsetDelete (key 47): delete committed offsets of a group."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string


class OffsetDeleteRequest(Message, api_key=47, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[OffsetDeleteRequestTopic] = field()


class OffsetDeleteRequestTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteRequestPartition] = field()


class OffsetDeleteRequestPartition(Struct):
    partition_index: int32 = field()


class OffsetDeleteResponse(Message, api_key=47, versions="0"):
    error_code: int16 = field()
    throttle_time_ms: int32 = field()
    topics: list[OffsetDeleteResponseTopic] = field()


class OffsetDeleteResponseTopic(Struct):
    name: string = field()
    partitions: list[OffsetDeleteResponsePartition] = field()


class OffsetDeleteResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
