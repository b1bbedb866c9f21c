"""The APIs that elect the leader of the metadata quorum.

Vote (key 52): a raft candidate requests a vote.
v1 directory ids and endpoints (KIP-853); v2 pre-vote (KIP-996).

BeginQuorumEpoch (key 53): a new raft leader announces itself to the voters.
v1 flexible, directory ids and endpoints (KIP-853).

EndQuorumEpoch (key 54): a raft leader resigns and names its successors.
v1 flexible, directory ids and endpoints (KIP-853).
"""

from __future__ import annotations

from barnabas.wire.schema import Message, Struct, field, int16, int32, int64, string, uint16, uuid


class VoteRequest(Message, api_key=52, versions="0-2", listeners="controller"):
    cluster_id: string | None = field(default=None)
    voter_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[VoteRequestTopicData] = field()


class VoteRequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[VoteRequestPartitionData] = field()


class VoteRequestPartitionData(Struct):
    partition_index: int32 = field()
    replica_epoch: int32 = field()
    replica_id: int32 = field()
    replica_directory_id: uuid = field("1+", ignorable=True)
    voter_directory_id: uuid = field("1+", ignorable=True)
    last_offset_epoch: int32 = field()
    last_offset: int64 = field()
    pre_vote: bool = field("2+")


class VoteResponse(Message, api_key=52, versions="0-2"):
    error_code: int16 = field()
    topics: list[VoteResponseTopicData] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)


class VoteResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[VoteResponsePartitionData] = field()


class VoteResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    vote_granted: bool = field()


class NodeEndpoint(Struct):
    node_id: int32 = field()
    host: string = field()
    port: uint16 = field()


class BeginQuorumEpochRequest(
    Message, api_key=53, versions="0-1", flexible="1+", listeners="controller"
):
    cluster_id: string | None = field(default=None)
    voter_id: int32 = field("1+", default=-1, ignorable=True)
    topics: list[BeginRequestTopicData] = field()
    leader_endpoints: list[LeaderEndpoint] = field("1+", ignorable=True)


class BeginRequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[BeginRequestPartitionData] = field()


class BeginRequestPartitionData(Struct):
    partition_index: int32 = field()
    voter_directory_id: uuid = field("1+", ignorable=True)
    leader_id: int32 = field()
    leader_epoch: int32 = field()


class LeaderEndpoint(Struct):
    name: string = field()
    host: string = field()
    port: uint16 = field()


class BeginQuorumEpochResponse(Message, api_key=53, versions="0-1", flexible="1+"):
    error_code: int16 = field()
    topics: list[QuorumEpochResponseTopicData] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)


class QuorumEpochResponseTopicData(Struct):
    topic_name: string = field()
    partitions: list[QuorumEpochResponsePartitionData] = field()


class QuorumEpochResponsePartitionData(Struct):
    partition_index: int32 = field()
    error_code: int16 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()


class EndQuorumEpochRequest(
    Message, api_key=54, versions="0-1", flexible="1+", listeners="controller"
):
    cluster_id: string | None = field(default=None)
    topics: list[EndRequestTopicData] = field()
    leader_endpoints: list[LeaderEndpoint] = field("1+", ignorable=True)


class EndRequestTopicData(Struct):
    topic_name: string = field()
    partitions: list[EndRequestPartitionData] = field()


class EndRequestPartitionData(Struct):
    partition_index: int32 = field()
    leader_id: int32 = field()
    leader_epoch: int32 = field()
    preferred_successors: list[int32] = field("0", ignorable=True)
    preferred_candidates: list[ReplicaInfo] = field("1+", ignorable=True)


class ReplicaInfo(Struct):
    candidate_id: int32 = field()
    candidate_directory_id: uuid = field()


class EndQuorumEpochResponse(Message, api_key=54, versions="0-1", flexible="1+"):
    error_code: int16 = field()
    topics: list[QuorumEpochResponseTopicData] = field()
    node_endpoints: list[NodeEndpoint] = field("1+", tag=0)
