"""DescribeTopicPartitions (key 75): topics and their partitions, page by page (KIP-966)."""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


class DescribeTopicPartitionsRequest(
    Message, api_key=75, versions="0", flexible="0+", listeners="broker"
):
    topics: list[TopicRequest] = field()
    response_partition_limit: int32 = field(default=2000)
    cursor: Cursor | None = field(default=None)


class TopicRequest(Struct):
    name: string = field()


class Cursor(Struct):
    topic_name: string = field()
    partition_index: int32 = field()


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible="0+"):
    throttle_time_ms: int32 = field()
    topics: list[DescribeTopicPartitionsResponseTopic] = field()
    next_cursor: Cursor | None = field(default=None)


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int16 = field()
    name: string | None = field()
    topic_id: uuid = field()
    is_internal: bool = field()
    partitions: list[DescribeTopicPartitionsResponsePartition] = field()
    topic_authorized_operations: int32 = field(default=-(2**31))


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int16 = field()
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field(default=-1)
    replica_nodes: list[int32] = field()
    isr_nodes: list[int32] = field()
    eligible_leader_replicas: list[int32] | None = field(default=None)
    last_known_elr: list[int32] | None = field(default=None)
    offline_replicas: list[int32] = field()
