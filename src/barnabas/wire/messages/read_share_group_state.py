"""ReadShareGroupState (key 84): the stored state of share partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uuid


class ReadShareGroupStateRequest(
    Message, api_key=84, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[ReadStateData] = field()


class ReadStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition: int32 = field()
    leader_epoch: int32 = field()


class ReadShareGroupStateResponse(Message, api_key=84, versions="0", flexible="0+"):
    results: list[ReadStateResult] = field()


class ReadStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    state_epoch: int32 = field()
    start_offset: int64 = field()
    state_batches: list[StateBatch] = field()


class StateBatch(Struct):
    first_offset: int64 = field()
    last_offset: int64 = field()
    delivery_state: int8 = field()
    delivery_count: int16 = field()
