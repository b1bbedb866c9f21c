"""AlterPartition (key 56): a partition leader proposes new in-sync replicas to the controller.

v2 topics by id; v3 broker epochs of the replicas (KIP-903).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, int64, uuid


class AlterPartitionRequest(Message, api_key=56, versions="2-3", listeners="controller"):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)
    topics: list[RequestTopicData] = field()


class RequestTopicData(Struct):
    topic_id: uuid = field()
    partitions: list[RequestPartitionData] = field()


class RequestPartitionData(Struct):
    partition_index: int32 = field()
    leader_epoch: int32 = field()
    new_isr: list[int32] = field("0-2")
    new_isr_with_epochs: list[BrokerState] = field("3+")
    leader_recovery_state: int8 = field()
    partition_epoch: int32 = field()


class BrokerState(Struct):
    broker_id: int32 = field()
    broker_epoch: int64 = field(default=-1)


class AlterPartitionResponse(Message, api_key=56, versions="2-3"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    topics: list[ResponseTopicData] = field()


class ResponseTopicData(Struct):
    topic_id: uuid = field()
    partitions: list[ResponsePartitionData] = field()


class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    isr: list[int32] = field()
    leader_recovery_state: int8 = field()
    partition_epoch: int32 = field()
