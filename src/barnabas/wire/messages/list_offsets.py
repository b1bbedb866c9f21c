"""ListOffsets (key 2): find an offset by timestamp, or the ends of a partition.

v2 isolation level; v4 leader epochs; v6 flexible; v7 the largest timestamp (-3); v8 the earliest
local offset (-4); v9 the latest tiered (-5); v10 timeout for reads of remote storage; v11
the earliest pending upload (-6).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string


class ListOffsetsRequest(Message, api_key=2, versions="1-11", flexible="6+", listeners="broker"):
    replica_id: int32 = field()
    isolation_level: int8 = field("2+")
    topics: list[ListOffsetsTopic] = field()
    timeout_ms: int32 = field("10+", ignorable=True)


class ListOffsetsTopic(Struct):
    name: string = field()
    partitions: list[ListOffsetsPartition] = field()


class ListOffsetsPartition(Struct):
    partition_index: int32 = field()
    current_leader_epoch: int32 = field("4+", default=-1, ignorable=True)
    timestamp: int64 = field()


class ListOffsetsResponse(Message, api_key=2, versions="1-11", flexible="6+"):
    throttle_time_ms: int32 = field("2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field()


class ListOffsetsTopicResponse(Struct):
    name: string = field()
    partitions: list[ListOffsetsPartitionResponse] = field()


class ListOffsetsPartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    timestamp: int64 = field(default=-1)
    offset: int64 = field(default=-1)
    leader_epoch: int32 = field("4+", default=-1)
