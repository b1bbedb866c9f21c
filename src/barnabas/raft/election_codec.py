"""Converts election messages between the consensus and the wire.

Every request and response names one topic with one partition, that of the metadata log. Parsing
any other gives None.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.raft.addresses import ControllerAddress, QuorumLeader
from barnabas.raft.messages import (
    BeginEpochRequest,
    EndEpochRequest,
    EpochResponse,
    RaftVoteRequest,
    RaftVoteResponse,
)
from barnabas.raft.roles import NO_NODE
from barnabas.raft.snapshots import METADATA_TOPIC
from barnabas.raft.voters import ReplicaKey, VoterEndpoint, wire_endpoints
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.raft_elections import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginRequestPartitionData,
    BeginRequestTopicData,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndRequestPartitionData,
    EndRequestTopicData,
    LeaderEndpoint,
    NodeEndpoint,
    QuorumEpochResponsePartitionData,
    QuorumEpochResponseTopicData,
    ReplicaInfo,
    VoteRequest,
    VoteRequestPartitionData,
    VoteRequestTopicData,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)

E = TypeVar("E")


def metadata_partition(topics: list[Any]) -> Any | None:
    """Returns the partition of the metadata log if a message names it and nothing else."""
    topic_and_partition = only_partition(topics)
    if topic_and_partition is None:
        return None
    topic, partition = topic_and_partition
    is_metadata = (topic.topic_name, partition.partition_index) == (METADATA_TOPIC, 0)
    return partition if is_metadata else None


def only_partition(topics: list[Any]) -> tuple[Any, Any] | None:
    """Returns the topic and its partition if there is exactly one."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    return topics[0], topics[0].partitions[0]


def leader_address(response: Any, leader_id: int) -> ControllerAddress | None:
    """Returns the leader's address that a response reports."""
    for node in response.node_endpoints:
        if node.node_id == leader_id and node.host and node.port > 0:
            return ControllerAddress(node.host, node.port)
    return None


def node_endpoints(endpoint: Callable[..., E], leader: QuorumLeader | None) -> list[E]:
    """Returns the leader's address for a response; every API has its own `endpoint` type."""
    if leader is None:
        return []
    return [endpoint(node_id=leader.node_id, host=leader.host, port=leader.port)]


# Vote


def vote_request(cluster_id: str, request: RaftVoteRequest) -> VoteRequest:
    voter = request.voter or ReplicaKey(NO_NODE)
    partition = VoteRequestPartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate.node_id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    topic = VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=voter.node_id, topics=[topic])


def parse_vote_request(request: VoteRequest) -> RaftVoteRequest | None:
    partition = metadata_partition(request.topics)
    if partition is None:
        return None
    return RaftVoteRequest(
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        epoch=partition.replica_epoch,
        last_epoch=partition.last_offset_epoch,
        last_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
        voter=_voter(request.voter_id, partition.voter_directory_id),
    )


def vote_response(response: RaftVoteResponse, leader: QuorumLeader | None) -> VoteResponse:
    partition = VoteResponsePartitionData(
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        vote_granted=response.granted,
    )
    topic = VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return VoteResponse(topics=[topic], node_endpoints=node_endpoints(NodeEndpoint, leader))


def parse_vote_response(response: VoteResponse) -> RaftVoteResponse | None:
    partition = metadata_partition(response.topics)
    if partition is None or response.error_code:
        return None
    return RaftVoteResponse(
        ErrorCode.of(partition.error_code),
        partition.leader_id,
        partition.leader_epoch,
        partition.vote_granted,
    )


# BeginQuorumEpoch and EndQuorumEpoch


def begin_request(
    cluster_id: str, request: BeginEpochRequest, endpoints: tuple[VoterEndpoint, ...]
) -> BeginQuorumEpochRequest:
    voter = request.voter or ReplicaKey(NO_NODE)
    partition = BeginRequestPartitionData(
        voter_directory_id=voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[BeginRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=wire_endpoints(LeaderEndpoint, endpoints),
    )


def parse_begin_request(request: BeginQuorumEpochRequest) -> BeginEpochRequest | None:
    partition = metadata_partition(request.topics)
    if partition is None:
        return None
    return BeginEpochRequest(
        partition.leader_id,
        partition.leader_epoch,
        _voter(request.voter_id, partition.voter_directory_id),
    )


def end_request(
    cluster_id: str, request: EndEpochRequest, endpoints: tuple[VoterEndpoint, ...]
) -> EndQuorumEpochRequest:
    partition = EndRequestPartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=[key.node_id for key in request.candidates],
        preferred_candidates=[
            ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in request.candidates
        ],
    )
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[EndRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=wire_endpoints(LeaderEndpoint, endpoints),
    )


def parse_end_request(request: EndQuorumEpochRequest) -> EndEpochRequest | None:
    partition = metadata_partition(request.topics)
    if partition is None:
        return None
    candidates = tuple(
        ReplicaKey(candidate.candidate_id, candidate.candidate_directory_id)
        for candidate in partition.preferred_candidates
    ) or tuple(map(ReplicaKey, partition.preferred_successors))
    return EndEpochRequest(partition.leader_id, partition.leader_epoch, candidates)


def begin_response(
    response: EpochResponse, leader: QuorumLeader | None
) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(**_epoch_response_fields(response, leader))


def end_response(response: EpochResponse, leader: QuorumLeader | None) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(**_epoch_response_fields(response, leader))


def _epoch_response_fields(response: EpochResponse, leader: QuorumLeader | None) -> dict[str, Any]:
    partition = QuorumEpochResponsePartitionData(
        error_code=response.error, leader_id=response.leader_id, leader_epoch=response.epoch
    )
    topic = QuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return {"topics": [topic], "node_endpoints": node_endpoints(NodeEndpoint, leader)}


def parse_epoch_response(
    response: BeginQuorumEpochResponse | EndQuorumEpochResponse,
) -> EpochResponse | None:
    partition = metadata_partition(response.topics)
    if partition is None or response.error_code:
        return None
    return EpochResponse(
        ErrorCode.of(partition.error_code), partition.leader_id, partition.leader_epoch
    )


def _voter(node_id: int, directory_id: bytes) -> ReplicaKey | None:
    """Returns the voter that a request is for; None if it names none."""
    return ReplicaKey(node_id, directory_id) if node_id >= 0 else None
