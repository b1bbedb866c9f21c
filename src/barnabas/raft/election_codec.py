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
from barnabas.wire.messages import raft_elections
from barnabas.wire.messages import raft_elections as begin
from barnabas.wire.messages import raft_elections as end

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


def vote_request(cluster_id: str, request: RaftVoteRequest) -> raft_elections.VoteRequest:
    voter = request.voter or ReplicaKey(NO_NODE)
    partition = raft_elections.VoteRequestPartitionData(
        replica_epoch=request.epoch,
        replica_id=request.candidate.node_id,
        replica_directory_id=request.candidate.directory_id,
        voter_directory_id=voter.directory_id,
        last_offset_epoch=request.last_epoch,
        last_offset=request.last_offset,
        pre_vote=request.pre_vote,
    )
    topic = raft_elections.VoteRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return raft_elections.VoteRequest(cluster_id=cluster_id, voter_id=voter.node_id, topics=[topic])


def parse_vote_request(request: raft_elections.VoteRequest) -> RaftVoteRequest | None:
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


def vote_response(
    response: RaftVoteResponse, leader: QuorumLeader | None
) -> raft_elections.VoteResponse:
    return raft_elections.VoteResponse(
        **_response_fields(vote, response, leader, vote_granted=response.granted)
    )


def parse_vote_response(response: raft_elections.VoteResponse) -> RaftVoteResponse | None:
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
) -> begin.BeginQuorumEpochRequest:
    voter = request.voter or ReplicaKey(NO_NODE)
    partition = begin.BeginRequestPartitionData(
        voter_directory_id=voter.directory_id,
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
    )
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[begin.BeginRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=wire_endpoints(begin.LeaderEndpoint, endpoints),
    )


def parse_begin_request(request: begin.BeginQuorumEpochRequest) -> BeginEpochRequest | None:
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
) -> end.EndQuorumEpochRequest:
    partition = end.EndRequestPartitionData(
        leader_id=request.leader_id,
        leader_epoch=request.epoch,
        preferred_successors=[key.node_id for key in request.candidates],
        preferred_candidates=[
            end.ReplicaInfo(candidate_id=key.node_id, candidate_directory_id=key.directory_id)
            for key in request.candidates
        ],
    )
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[end.EndRequestTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        leader_endpoints=wire_endpoints(end.LeaderEndpoint, endpoints),
    )


def parse_end_request(request: end.EndQuorumEpochRequest) -> EndEpochRequest | None:
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
) -> begin.BeginQuorumEpochResponse:
    return begin.BeginQuorumEpochResponse(**_response_fields(begin, response, leader))


def end_response(
    response: EpochResponse, leader: QuorumLeader | None
) -> end.EndQuorumEpochResponse:
    return end.EndQuorumEpochResponse(**_response_fields(end, response, leader))


def _response_fields(
    messages: Any,
    response: RaftVoteResponse | EpochResponse,
    leader: QuorumLeader | None,
    **partition_fields: bool,
) -> dict[str, Any]:
    """Returns the fields of a response, which have the same names in all modules of messages."""
    partition = messages.ResponsePartitionData(
        error_code=response.error,
        leader_id=response.leader_id,
        leader_epoch=response.epoch,
        **partition_fields,
    )
    topic = messages.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    return {"topics": [topic], "node_endpoints": node_endpoints(messages.NodeEndpoint, leader)}


def parse_epoch_response(
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse,
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
