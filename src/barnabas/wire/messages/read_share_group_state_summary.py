"""ReadShareGroupStateSummary (key 87): start offsets of share partitions, without batches.

v1 how many records are delivered for good.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uuid


class ReadShareGroupStateSummaryRequest(
    Message, api_key=87, versions="0-1", flexible="0+", listeners="broker"
):
    group_id: string = field()
    topics: list[ReadStateSummaryData] = field()


class ReadStateSummaryData(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionData] = field()


class PartitionData(Struct):
    partition: int32 = field()
    leader_epoch: int32 = field()


class ReadShareGroupStateSummaryResponse(Message, api_key=87, versions="0-1", flexible="0+"):
    results: list[ReadStateSummaryResult] = field()


class ReadStateSummaryResult(Struct):
    topic_id: uuid = field()
    partitions: list[PartitionResult] = field()


class PartitionResult(Struct):
    partition: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    state_epoch: int32 = field()
    leader_epoch: int32 = field()
    start_offset: int64 = field()
    delivery_complete_count: int32 = field("1+", default=-1, ignorable=True)
