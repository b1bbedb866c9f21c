"""The APIs that persist the state of share partitions.

InitializeShareGroupState (key 83): initialize the stored state of share partitions.

ReadShareGroupState (key 84): the stored state of share partitions.

WriteShareGroupState (key 85): store the state of share partitions.
v1 the number of completed deliveries.

DeleteShareGroupState (key 86): delete the stored state of share partitions.

ReadShareGroupStateSummary (key 87): start offsets of share partitions, without batches.
v1 the number of completed deliveries.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, string, uuid


class InitializeShareGroupStateRequest(Message, api_key=83, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[InitializeStateData] = field()


class InitializeStateData(Struct):
    topic_id: uuid = field()
    partitions: list[InitializePartitionData] = field()


class InitializePartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    start_offset: int64 = field()


class InitializeShareGroupStateResponse(Message, api_key=83, versions="0"):
    results: list[InitializeStateResult] = field()


class InitializeStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)


class ReadShareGroupStateRequest(Message, api_key=84, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[ReadStateData] = field()


class ReadStateData(Struct):
    topic_id: uuid = field()
    partitions: list[ReadPartitionData] = field()


class ReadPartitionData(Struct):
    partition: int32 = field()
    leader_epoch: int32 = field()


class ReadShareGroupStateResponse(Message, api_key=84, versions="0"):
    results: list[ReadStateResult] = field()


class ReadStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[ReadPartitionResult] = field()


class ReadPartitionResult(Struct):
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


class WriteShareGroupStateRequest(Message, api_key=85, versions="0-1", listeners="broker"):
    group_id: string = field()
    topics: list[WriteStateData] = field()


class WriteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[WritePartitionData] = field()


class WritePartitionData(Struct):
    partition: int32 = field()
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)
    state_batches: list[StateBatch] = field()


class WriteShareGroupStateResponse(Message, api_key=85, versions="0-1"):
    results: list[WriteStateResult] = field()


class WriteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class DeleteShareGroupStateRequest(Message, api_key=86, versions="0", listeners="broker"):
    group_id: string = field()
    topics: list[DeleteStateData] = field()


class DeleteStateData(Struct):
    topic_id: uuid = field()
    partitions: list[DeletePartitionData] = field()


class DeletePartitionData(Struct):
    partition: int32 = field()


class DeleteShareGroupStateResponse(Message, api_key=86, versions="0"):
    results: list[DeleteStateResult] = field()


class DeleteStateResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class ReadShareGroupStateSummaryRequest(Message, api_key=87, versions="0-1", listeners="broker"):
    group_id: string = field()
    topics: list[ReadStateSummaryData] = field()


class ReadStateSummaryData(Struct):
    topic_id: uuid = field()
    partitions: list[ReadPartitionData] = field()


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1"):
    results: list[ReadStateSummaryResult] = field()


class ReadStateSummaryResult(Struct):
    topic_id: uuid = field()
    partitions: list[ReadSummaryPartitionResult] = field()


class ReadSummaryPartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)
