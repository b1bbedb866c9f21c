"""Vote (key 52): a raft candidate asks a voter for its vote.

v1 directory ids and endpoints (KIP-853); v2 pre-vote (KIP-996).

Structs with the same name in request and response get a prefix where they differ.
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class VoteRequest(Message, api_key=52, versions="0-2", flexible="0+", listeners="controller"):
    cluster_id: string | None = field(default=None)
    voter_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[RequestTopicData] = field()


class RequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[RequestPartitionData] = field()


class RequestPartitionData(Struct):
    partition_index: int32 = field()
    replica_epoch: int32 = field()
    replica_id: int32 = field()
    replica_directory_id: uuid = field("1+", ignorable=True)
    voter_directory_id: uuid = field("1+", ignorable=True)
    last_offset_epoch: int32 = field()
    last_offset: int64 = field()
    pre_vote: bool = field("2+")


class VoteResponse(Message, api_key=52, versions="0-2", flexible="0+"):
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
    vote_granted: bool = field()


class NodeEndpoint(Struct):
    node_id: int32 = field()
    host: string = field()
    port: uint16 = field()
