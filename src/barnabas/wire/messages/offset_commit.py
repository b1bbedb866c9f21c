"""OffsetCommit (key 8): store the offsets a group has consumed to.

v3 throttling; v5 no retention time; v6 leader epochs; v7 static members; v8 flexible; v9 members of
the new group protocol (KIP-848); v10 topics by id.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class OffsetCommitRequest(Message, api_key=8, versions="2-10", flexible="8+", listeners="broker"):
    group_id: string = field()
    generation_id_or_member_epoch: int32 = field(default=-1)
    member_id: string = field()
    group_instance_id: string | None = field("7+", default=None)
    retention_time_ms: int64 = field("2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field()


class OffsetCommitRequestTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field()


class OffsetCommitRequestPartition(Struct):
    partition_index: int32 = field()
    committed_offset: int64 = field()
    committed_leader_epoch: int32 = field("6+", default=-1, ignorable=True)
    committed_metadata: string | None = field()


class OffsetCommitResponse(Message, api_key=8, versions="2-10", flexible="8+"):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field()


class OffsetCommitResponseTopic(Struct):
    name: string = field("0-9", ignorable=True)
    topic_id: uuid = field("10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field()


class OffsetCommitResponsePartition(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
