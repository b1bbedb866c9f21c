"""DescribeQuorum (key 55): leader, voters and observers of the metadata log.

v1 fetch timestamps; v2 directory ids, endpoints and error messages (KIP-853).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", listeners="broker controller"):
    topics: list[RequestTopicData] = field()


class RequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[RequestPartitionData] = field()


class RequestPartitionData(Struct):
    partition_index: int32 = field()


class DescribeQuorumResponse(Message, api_key=55, versions="0-2"):
    error_code: int16 = field()
    error_message: string | None = field("2+", ignorable=True)
    topics: list[ResponseTopicData] = field()
    nodes: list[Node] = field("2+")


class ResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[ResponsePartitionData] = field()


class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    error_message: string | None = field("2+", ignorable=True)
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    high_watermark: int64 = field()
    current_voters: list[ReplicaState] = field()
    observers: list[ReplicaState] = field()


class ReplicaState(Struct):
    replica_id: int32 = field()
    replica_directory_id: uuid = field("2+")
    log_end_offset: int64 = field()
    last_fetch_timestamp: int64 = field("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int64 = field("1+", default=-1, ignorable=True)


class Node(Struct):
    node_id: int32 = field()
    listeners: list[Listener] = field()


class Listener(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()
