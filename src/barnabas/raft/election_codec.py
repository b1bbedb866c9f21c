"""Between the consensus and the wire: the messages of elections.

Every request and every answer is about one topic with one partition, the metadata log's. An
answer that is not is no answer: reading it gives None.
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
from barnabas.raft.metadata_log import METADATA_TOPIC
from barnabas.raft.roles import NO_NODE
from barnabas.raft.voters import ReplicaKey, VoterEndpoint
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import begin_quorum_epoch as begin
from barnabas.wire.messages import end_quorum_epoch as end
from barnabas.wire.messages import vote

E = TypeVar("E")


def metadata_partition(topics: list[Any]) -> Any | None:
    """What a message says of the metadata log, if it speaks of that and of nothing else."""
    found = only_partition(topics)
    if found is None:
        return None
    topic, partition = found
    is_it = (topic.topic_name, partition.partition_index) == (METADATA_TOPIC, 0)
    return partition if is_it else None


def only_partition(topics: list[Any]) -> tuple[Any, Any] | None:
    """The one topic and its one partition."""
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    return topics[0], topics[0].partitions[0]


def leader_address(response: Any, leader_id: int) -> ControllerAddress | None:
    """Where a response says that the leader listens."""
    for node in response.node_endpoints:
        if node.node_id == leader_id and node.host and node.port > 0:
            return ControllerAddress(node.host, node.port)
    return None


def node_endpoints(endpoint: Callable[..., E], leader: QuorumLeader | None) -> list[E]:
    """Where the leader listens, as a response says it; every API has an `endpoint` of its own."""
    if leader is None:
        return []
    return [endpoint(node_id=leader.node_id, host=leader.host, port=leader.port)]


# Vote


def vote_request(cluster_id: str, asked: RaftVoteRequest) -> vote.VoteRequest:
    voter = asked.voter or ReplicaKey(NO_NODE)
    return vote.VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[
            vote.RequestTopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    vote.RequestPartitionData(
                        replica_epoch=asked.epoch,
                        replica_id=asked.candidate.node_id,
                        replica_directory_id=asked.candidate.directory_id,
                        voter_directory_id=voter.directory_id,
                        last_offset_epoch=asked.last_epoch,
                        last_offset=asked.last_offset,
                        pre_vote=asked.pre_vote,
                    )
                ],
            )
        ],
    )


def read_vote_request(request: vote.VoteRequest) -> RaftVoteRequest | None:
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


def vote_response(told: RaftVoteResponse, leader: QuorumLeader | None) -> vote.VoteResponse:
    return vote.VoteResponse(
        topics=[
            vote.ResponseTopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    vote.ResponsePartitionData(
                        error_code=told.error,
                        leader_id=told.leader_id,
                        leader_epoch=told.epoch,
                        vote_granted=told.granted,
                    )
                ],
            )
        ],
        node_endpoints=node_endpoints(vote.NodeEndpoint, leader),
    )


def read_vote_response(response: vote.VoteResponse) -> RaftVoteResponse | None:
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
    cluster_id: str, begun: BeginEpochRequest, endpoints: tuple[VoterEndpoint, ...]
) -> begin.BeginQuorumEpochRequest:
    voter = begun.voter or ReplicaKey(NO_NODE)
    return begin.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.node_id,
        topics=[
            begin.RequestTopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    begin.RequestPartitionData(
                        voter_directory_id=voter.directory_id,
                        leader_id=begun.leader_id,
                        leader_epoch=begun.epoch,
                    )
                ],
            )
        ],
        leader_endpoints=[
            begin.LeaderEndpoint(name=each.name, host=each.host, port=each.port)
            for each in endpoints
        ],
    )


def read_begin_request(request: begin.BeginQuorumEpochRequest) -> BeginEpochRequest | None:
    partition = metadata_partition(request.topics)
    if partition is None:
        return None
    return BeginEpochRequest(
        partition.leader_id,
        partition.leader_epoch,
        _voter(request.voter_id, partition.voter_directory_id),
    )


def end_request(
    cluster_id: str, ended: EndEpochRequest, endpoints: tuple[VoterEndpoint, ...]
) -> end.EndQuorumEpochRequest:
    return end.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[
            end.RequestTopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    end.RequestPartitionData(
                        leader_id=ended.leader_id,
                        leader_epoch=ended.epoch,
                        preferred_successors=[key.node_id for key in ended.candidates],
                        preferred_candidates=[
                            end.ReplicaInfo(
                                candidate_id=key.node_id, candidate_directory_id=key.directory_id
                            )
                            for key in ended.candidates
                        ],
                    )
                ],
            )
        ],
        leader_endpoints=[
            end.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints
        ],
    )


def read_end_request(request: end.EndQuorumEpochRequest) -> EndEpochRequest | None:
    partition = metadata_partition(request.topics)
    if partition is None:
        return None
    candidates = tuple(
        ReplicaKey(each.candidate_id, each.candidate_directory_id)
        for each in partition.preferred_candidates
    ) or tuple(map(ReplicaKey, partition.preferred_successors))
    return EndEpochRequest(partition.leader_id, partition.leader_epoch, candidates)


def begin_response(
    told: EpochResponse, leader: QuorumLeader | None
) -> begin.BeginQuorumEpochResponse:
    partition = begin.ResponsePartitionData(
        error_code=told.error, leader_id=told.leader_id, leader_epoch=told.epoch
    )
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    nodes = node_endpoints(begin.NodeEndpoint, leader)
    return begin.BeginQuorumEpochResponse(topics=[topic], node_endpoints=nodes)


def end_response(told: EpochResponse, leader: QuorumLeader | None) -> end.EndQuorumEpochResponse:
    partition = end.ResponsePartitionData(
        error_code=told.error, leader_id=told.leader_id, leader_epoch=told.epoch
    )
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    nodes = node_endpoints(end.NodeEndpoint, leader)
    return end.EndQuorumEpochResponse(topics=[topic], node_endpoints=nodes)


def read_epoch_response(
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse,
) -> EpochResponse | None:
    partition = metadata_partition(response.topics)
    if partition is None or response.error_code:
        return None
    return EpochResponse(
        ErrorCode.of(partition.error_code), partition.leader_id, partition.leader_epoch
    )


def _voter(node_id: int, directory_id: bytes) -> ReplicaKey | None:
    """Whom a request is meant for; None if it does not say."""
    return ReplicaKey(node_id, directory_id) if node_id >= 0 else None
