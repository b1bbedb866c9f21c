"""Produce (key 0): append record batches to partitions.

v5 log start offset; v7 zstd allowed; v8 errors of single records; v9 flexible; v10 the new leader
in responses of a former one (KIP-951); v12 a write adds the partition to the transaction
(KIP-890); v13 topics by id.
"""

from __future__ import annotations

from barnabas.wire.messages.leaders import LeaderIdAndEpoch, NodeEndpoint
from barnabas.wire.schema import Message, Records, Struct, field, int16, int32, int64, string, uuid


class ProduceRequest(Message, api_key=0, versions="3-13", flexible="9+", listeners="broker"):
    transactional_id: string | None = field(default=None)
    acks: int16 = field()
    timeout_ms: int32 = field()
    topic_data: list[TopicProduceData] = field()


class TopicProduceData(Struct):
    name: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field()


class PartitionProduceData(Struct):
    index: int32 = field()
    records: Records | None = field()


class ProduceResponse(Message, api_key=0, versions="3-13", flexible="9+"):
    responses: list[TopicProduceResponse] = field()
    throttle_time_ms: int32 = field()
    node_endpoints: list[NodeEndpoint] = field("10+", tag=0)


class TopicProduceResponse(Struct):
    name: string = field("0-12", ignorable=True)
    topic_id: uuid = field("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field()


class PartitionProduceResponse(Struct):
    index: int32 = field()
    error_code: int16 = field()
    base_offset: int64 = field()
    log_append_time_ms: int64 = field(default=-1)
    log_start_offset: int64 = field("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field("8+", ignorable=True)
    error_message: string | None = field("8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = field("10+", tag=0)


class BatchIndexAndErrorMessage(Struct):
    batch_index: int32 = field()
    batch_index_error_message: string | None = field(default=None)
