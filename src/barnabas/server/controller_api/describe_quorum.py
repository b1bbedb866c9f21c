"""DescribeQuorum (key 55): who leads the metadata log, and how far every replica of it has come.

v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages.
"""

from collections.abc import Iterable

from barnabas.raft import METADATA_TOPIC
from barnabas.raft.quorum_description import QuorumDescription
from barnabas.raft.quorum_description import QuorumReplicaState as Replica
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.uuid import ZERO

FIRST_VERSION_WITH_DIRECTORIES = 2


async def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    quorum = context.controller_node.quorum
    asked = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if asked != [(METADATA_TOPIC, 0)]:
        # As Kafka has it: who asks for anything else as well gets nothing.
        return _refusal(
            request,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The quorum keeps {METADATA_TOPIC}-0 only; ask for nothing else.",
        )
    if not quorum.is_leader:
        return _refusal(
            request, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum."
        )
    return _description(quorum.describe(), context.api_version >= FIRST_VERSION_WITH_DIRECTORIES)


def _refusal(
    request: DescribeQuorumRequest, code: ErrorCode, message: str
) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        topics=[
            ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    ResponsePartitionData(
                        partition_index=partition.partition_index,
                        error_code=code,
                        error_message=message,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _description(quorum: QuorumDescription, with_directories: bool) -> DescribeQuorumResponse:
    partition = ResponsePartitionData(
        partition_index=0,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=_replicas(quorum.voter_states, with_directories),
        observers=_replicas(quorum.observer_states, with_directories),
    )
    return DescribeQuorumResponse(
        topics=[ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=_nodes(quorum) if with_directories else [],
    )


def _replicas(replicas: Iterable[Replica], with_directories: bool) -> list[ReplicaState]:
    return [
        ReplicaState(
            replica_id=each.node_id,
            replica_directory_id=each.directory_id if with_directories else ZERO,
            log_end_offset=each.end_offset,
            last_fetch_timestamp=each.last_fetch_ms,
            last_caught_up_timestamp=each.last_caught_up_ms,
        )
        for each in replicas
    ]


def _nodes(quorum: QuorumDescription) -> list[Node]:
    return [
        Node(
            node_id=voter.node_id,
            listeners=[
                Listener(name=endpoint.name, host=endpoint.host, port=endpoint.port)
                for endpoint in voter.endpoints
            ],
        )
        for voter in quorum.voters
    ]
