"""OffsetFetch (key 9): the offsets that groups have committed.

v2 null asks for all topics, an error for the whole response; v3 throttling; v5 leader epochs; v6
flexible; v7 wait for open transactions (KIP-447); v8 several groups at once; v9 member id and epoch
(KIP-848); v10 topics by id.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class OffsetFetchRequest(Message, api_key=9, versions="1-10", flexible="6+", listeners="broker"):
    group_id: string = field("0-7")
    topics: list[OffsetFetchRequestTopic] | None = field("0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field("8+")
    require_stable: bool = field("7+")


class OffsetFetchRequestTopic(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class OffsetFetchRequestGroup(Struct):
    group_id: string = field()
    member_id: string | None = field("9+", default=None, ignorable=True)
    member_epoch: int32 = field("9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field()


class OffsetFetchRequestTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partition_indexes: list[int32] = field()


class OffsetFetchResponse(Message, api_key=9, versions="1-10", flexible="6+"):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field("0-7")
    error_code: int16 = field("2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field("8+")


class OffsetFetchResponseTopic(Struct):
    name: string = field()
    partitions: list[OffsetFetchResponsePartition] = field()


class OffsetFetchResponsePartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("5-7", default=-1, ignorable=True)
    metadata: string | None = field()
    error_code: int16 = field()


class OffsetFetchResponseGroup(Struct):
    group_id: string = field()
    topics: list[OffsetFetchResponseTopics] = field()
    error_code: int16 = field()


class OffsetFetchResponseTopics(Struct):
    name: string = field("8-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field()


class OffsetFetchResponsePartitions(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field(default=-1)
    metadata: string | None = field()
    error_code: int16 = field()
