"""EndQuorumEpoch (key 54): a raft leader resigns and names its successors.

v1 flexible, directory ids and endpoints (KIP-853).

Structs with the same name in request and response get a prefix where they differ.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, string, uint16, uuid


class EndQuorumEpochRequest(
    Message, api_key=54, versions="0-1", flexible="1+", listeners="controller"
):
    cluster_id: string | None = field(default=None)
    topics: list[RequestTopicData] = field()
    leader_endpoints: list[LeaderEndpoint] = field("1+", ignorable=True)


class RequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[RequestPartitionData] = field()


class RequestPartitionData(Struct):
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    preferred_successors: list[int32] = field("0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = field("1+", ignorable=True)


class ReplicaInfo(Struct):
    candidate_id: int32 = field()
    candidate_directory_id: uuid = field()


class LeaderEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible="1+"):
    error_code: int16 = field()
    topics: list[ResponseTopicData] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)


class ResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[ResponsePartitionData] = field()


class ResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()


class NodeEndpoint(Struct):
    node_id: int32 = field()
    host: string = field()
    port: uint16 = field()
