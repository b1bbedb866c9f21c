"""InitializeShareGroupState (key 83): begin the stored state of share partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(
    Message, api_key=83, versions="0", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[InitializeStateData] = field()


class InitializeStateData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    start_offset: int64 = field()


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = field()


class InitializeStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
