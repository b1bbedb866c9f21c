"""DescribeProducers (key 61): the active producers of partitions."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string


class DescribeProducersRequest(
    Message, api_key=61, versions="0", flexible="0+", listeners="broker"
):
    topics: list[TopicRequest] = field()


class TopicRequest(Struct):
    name: string = field()
    partition_indexes: list[int32] = field()


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    topics: list[TopicResponse] = field()


class TopicResponse(Struct):
    name: string = field()
    partitions: list[PartitionResponse] = field()


class PartitionResponse(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    active_producers: list[ProducerState] = field()


class ProducerState(Struct):
    producer_id: int64 = field()
    producer_epoch: int32 = field()
    last_sequence: int32 = field(default=-1)
    last_timestamp: int64 = field(default=-1)
    coordinator_epoch: int32 = field()
    current_txn_start_offset: int64 = field(default=-1)
