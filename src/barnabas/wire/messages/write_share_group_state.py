"""WriteShareGroupState (key 85): store the state of share partitions.

v1 how many records are delivered for good.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uuid


class WriteShareGroupStateRequest(
    Message, api_key=85, versions="0-1", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[WriteStateData] = field()


class WriteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field()


class StateBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_state: int8 = field()
    delivery_count: int16 = field()


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1", flexible="0+"):
    results: list[WriteStateResult] = field()


class WriteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
