"""Metadata (key 3): the brokers of the cluster, and the topics with their partitions and leaders.

v1 null asks for all topics; controller, racks, internal topics; v2 cluster id; v4 topics are
created only on request; v5 offline replicas; v7 leader epochs; v8 authorized operations; v9
flexible; v10 topic ids; v11 cluster operations move to DescribeCluster; v12 topics by id alone; v13
an error for the whole response (KIP-1102).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uuid


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
