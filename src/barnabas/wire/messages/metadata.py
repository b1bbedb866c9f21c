"""The APIs that describe brokers, topics and partitions to clients.

Metadata (key 3): the brokers of the cluster, and the topics with their partitions and leaders.
v1 null requests all topics; controller, racks, internal topics; v2 cluster id; v4 topics are
created only on request; v5 offline replicas; v7 leader epochs; v8 authorized operations; v9
flexible; v10 topic ids; v11 cluster operations move to DescribeCluster; v12 topics by id only; v13
an error for the whole response (KIP-1102).

DescribeTopicPartitions (key 75): topics and their partitions, page by page (KIP-966).

DescribeCluster (key 60): the brokers or controllers of the cluster.
v1 which of the two; v2 fenced brokers too.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int8, int16, int32, string, uuid


class MetadataRequest(Message, api_key=3, versions="0-13", flexible="9+", listeners="broker"):
    topics: list[MetadataRequestTopic] | None = field(nullable="1+")
    allow_auto_topic_creation: bool = field("4+", default=True)
    include_cluster_authorized_operations: bool = field("8-10")
    include_topic_authorized_operations: bool = field("8+")


class MetadataRequestTopic(Struct):
    topic_id: uuid = field("10+", ignorable=True)
    name: string | None = field(nullable="10+")


class MetadataResponse(Message, api_key=3, versions="0-13", flexible="9+"):
    throttle_time_ms: int32 = field("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field()
    cluster_id: string | None = field("2+", default=None, ignorable=True)
    controller_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field()
    cluster_authorized_operations: int32 = field("8-10", default=-(2**31))
    error_code: int16 = field("13+", ignorable=True)


class MetadataResponseBroker(Struct):
    node_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field("1+", default=None, ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int16 = field()
    name: string | None = field(nullable="12+")
    topic_id: uuid = field("10+", ignorable=True)
    is_internal: bool = field("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field()
    topic_authorized_operations: int32 = field("8+", default=-(2**31))


class MetadataResponsePartition(Struct):
    error_code: int16 = field()
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field("7+", default=-1, ignorable=True)
    replica_nodes: list[int32] = field()
    isr_nodes: list[int32] = field()
    offline_replicas: list[int32] = field("5+", ignorable=True)


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", listeners="broker"):
    topics: list[TopicRequest] = field()
    response_partition_limit: int32 = field(default=2000)
    cursor: Cursor | None = field(default=None)


class TopicRequest(Struct):
    name: string = field()


class Cursor(Struct):
    topic_name: string = field()
    partition_index: int32 = field()


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0"):
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


BROKERS, CONTROLLERS = 1, 2


"""Endpoint types: what is described, and which nodes serve it."""


class DescribeClusterRequest(Message, api_key=60, versions="0-2", listeners="broker controller"):
    include_cluster_authorized_operations: bool = field()
    endpoint_type: int8 = field("1+", default=1)
    include_fenced_brokers: bool = field("2+")


class DescribeClusterResponse(Message, api_key=60, versions="0-2"):
    throttle_time_ms: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field(default=None)
    endpoint_type: int8 = field("1+", default=1)
    cluster_id: string = field()
    controller_id: int32 = field(default=-1)
    brokers: list[DescribeClusterBroker] = field()
    cluster_authorized_operations: int32 = field(default=-(2**31))


class DescribeClusterBroker(Struct):
    broker_id: int32 = field()
    host: string = field()
    port: int32 = field()
    rack: string | None = field(default=None)
    is_fenced: bool = field("2+")
