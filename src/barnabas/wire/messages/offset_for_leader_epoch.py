"""OffsetForLeaderEpoch (key 23): where a leader epoch ends, to find divergence.

v3 replica id; v4 flexible.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class OffsetForLeaderEpochRequest(
    Message, api_key=23, versions="2-4", flexible="4+", listeners="broker"
):
    replica_id: int32 = field("3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field()


class OffsetForLeaderTopic(Struct):
    topic: string = field()
    partitions: list[OffsetForLeaderPartition] = field()


class OffsetForLeaderPartition(Struct):
    partition: int32 = field()
    current_leader_epoch: int32 = field(default=-1)
    leader_epoch: int32 = field()


class OffsetForLeaderEpochResponse(Message, api_key=23, versions="2-4", flexible="4+"):
    throttle_time_ms: int32 = field()
    topics: list[OffsetForLeaderTopicResult] = field()


class OffsetForLeaderTopicResult(Struct):
    topic: string = field()
    partitions: list[EpochEndOffset] = field()


class EpochEndOffset(Struct):
    error_code: int16 = field()
    partition: int32 = field()
    leader_epoch: int32 = field(default=-1)
    end_offset: int64 = field(default=-1)
