"""Between the consensus and the wire: the messages of elections.

Every request and every answer is about one topic with one partition, the metadata log's. An
answer that is not is no answer: reading it gives None.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from barnabas.raft.messages import (
    BeginEpoch,
    EndEpoch,
    EpochTold,
    VoteAsked,
    VoteTold,
)
from barnabas.raft.metadata_log import METADATA_TOPIC
from barnabas.raft.roles import NOBODY
from barnabas.raft.voters import Endpoint, ReplicaKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages import begin_quorum_epoch as begin
from barnabas.wire.messages import end_quorum_epoch as end
from barnabas.wire.messages import vote

E = TypeVar("E")


class Address(NamedTuple):
    """Where a controller listens."""

    host: str
    port: int


@dataclass(slots=True, frozen=True)
class QuorumLeader:
    """Who leads the quorum, and where its controller listens."""

    node_id: int
    epoch: int
    host: str
    port: int


def of_the_log(topics: list[Any]) -> Any | None:
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


def leader_address(response: Any, leader_id: int) -> Address | None:
    """Where a response says that the leader listens."""
    for node in response.node_endpoints:
        if node.node_id == leader_id and node.host and node.port > 0:
            return Address(node.host, node.port)
    return None


def node_endpoints(endpoint: Callable[..., E], leader: QuorumLeader | None) -> list[E]:
    """Where the leader listens, as a response says it; every API has an `endpoint` of its own."""
    if leader is None:
        return []
    return [endpoint(node_id=leader.node_id, host=leader.host, port=leader.port)]


# Vote


def vote_request(cluster_id: str, asked: VoteAsked) -> vote.VoteRequest:
    voter = asked.voter or ReplicaKey(NOBODY)
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


def read_vote_request(request: vote.VoteRequest) -> VoteAsked | None:
    partition = of_the_log(request.topics)
    if partition is None:
        return None
    return VoteAsked(
        candidate=ReplicaKey(partition.replica_id, partition.replica_directory_id),
        epoch=partition.replica_epoch,
        last_epoch=partition.last_offset_epoch,
        last_offset=partition.last_offset,
        pre_vote=partition.pre_vote,
        voter=_voter(request.voter_id, partition.voter_directory_id),
    )


def vote_response(told: VoteTold, leader: QuorumLeader | None) -> vote.VoteResponse:
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


def read_vote_response(response: vote.VoteResponse) -> VoteTold | None:
    partition = of_the_log(response.topics)
    if partition is None or response.error_code:
        return None
    return VoteTold(
        ErrorCode.of(partition.error_code),
        partition.leader_id,
        partition.leader_epoch,
        partition.vote_granted,
    )


# BeginQuorumEpoch and EndQuorumEpoch


def begin_request(
    cluster_id: str, begun: BeginEpoch, endpoints: tuple[Endpoint, ...]
) -> begin.BeginQuorumEpochRequest:
    voter = begun.voter or ReplicaKey(NOBODY)
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


def read_begin_request(request: begin.BeginQuorumEpochRequest) -> BeginEpoch | None:
    partition = of_the_log(request.topics)
    if partition is None:
        return None
    return BeginEpoch(
        partition.leader_id,
        partition.leader_epoch,
        _voter(request.voter_id, partition.voter_directory_id),
    )


def end_request(
    cluster_id: str, ended: EndEpoch, endpoints: tuple[Endpoint, ...]
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


def read_end_request(request: end.EndQuorumEpochRequest) -> EndEpoch | None:
    partition = of_the_log(request.topics)
    if partition is None:
        return None
    candidates = tuple(
        ReplicaKey(each.candidate_id, each.candidate_directory_id)
        for each in partition.preferred_candidates
    ) or tuple(map(ReplicaKey, partition.preferred_successors))
    return EndEpoch(partition.leader_id, partition.leader_epoch, candidates)


def begin_response(told: EpochTold, leader: QuorumLeader | None) -> begin.BeginQuorumEpochResponse:
    partition = begin.ResponsePartitionData(
        error_code=told.error, leader_id=told.leader_id, leader_epoch=told.epoch
    )
    topic = begin.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    nodes = node_endpoints(begin.NodeEndpoint, leader)
    return begin.BeginQuorumEpochResponse(topics=[topic], node_endpoints=nodes)


def end_response(told: EpochTold, leader: QuorumLeader | None) -> end.EndQuorumEpochResponse:
    partition = end.ResponsePartitionData(
        error_code=told.error, leader_id=told.leader_id, leader_epoch=told.epoch
    )
    topic = end.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])
    nodes = node_endpoints(end.NodeEndpoint, leader)
    return end.EndQuorumEpochResponse(topics=[topic], node_endpoints=nodes)


def read_epoch_response(
    response: begin.BeginQuorumEpochResponse | end.EndQuorumEpochResponse,
) -> EpochTold | None:
    partition = of_the_log(response.topics)
    if partition is None or response.error_code:
        return None
    return EpochTold(
        ErrorCode.of(partition.error_code), partition.leader_id, partition.leader_epoch
    )


def _voter(node_id: int, directory_id: bytes) -> ReplicaKey | None:
    """Whom a request is meant for; None if it does not say."""
    return ReplicaKey(node_id, directory_id) if node_id >= 0 else None
