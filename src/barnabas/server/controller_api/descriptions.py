"""The APIs that describe the controllers of a cluster and their quorum."""

from collections.abc import Iterable

from barnabas.raft import METADATA_TOPIC
from barnabas.raft.quorum_description import QuorumDescription
from barnabas.raft.quorum_description import QuorumReplicaState as Replica
from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.api.api_versions import build_response
from barnabas.server.api.describe_cluster import require_endpoint_type
from barnabas.server.cluster_view import client_endpoint, cluster_operations
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    ReplicaState,
    ResponsePartitionData,
    ResponseTopicData,
)
from barnabas.wire.messages.metadata import (
    CONTROLLERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from barnabas.wire.uuid import ZERO

NO_CONTROLLER = -1
FIRST_VERSION_WITH_DIRECTORIES = 2


async def api_versions(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    """ApiVersions (key 18); see `barnabas.server.api.api_versions`."""
    node = context.controller_node
    return build_response(request, context, node, node.quorum.kraft_version)


async def describe_cluster(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    """DescribeCluster (key 60): the controllers (KIP-919).

    v1 requests brokers or controllers.
    """
    context.require_allowed(AclOperation.ALTER, CLUSTER)
    require_endpoint_type(request.endpoint_type, CONTROLLERS)
    node = context.controller_node
    leader = node.quorum.leader
    response = DescribeClusterResponse(
        endpoint_type=CONTROLLERS,
        cluster_id=node.cluster_id,
        controller_id=leader.node_id if leader is not None else NO_CONTROLLER,
        brokers=[
            DescribeClusterBroker(broker_id=controller_id, host=endpoint.host, port=endpoint.port)
            for controller_id, controller in sorted(node.image.controllers.items())
            if (endpoint := client_endpoint(controller, context))
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


async def describe_quorum(
    request: DescribeQuorumRequest, context: RequestContext
) -> DescribeQuorumResponse:
    """DescribeQuorum (key 55): the leader and the replicas of the metadata log.

    v1 fetch and caught-up times; v2 directory ids, the voters' listeners and error messages.
    """
    context.require_allowed(AclOperation.DESCRIBE, CLUSTER)
    quorum = context.controller_node.quorum
    requested = [
        (topic.topic_name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    if requested != [(METADATA_TOPIC, 0)]:
        # As in Kafka: a request for other partitions as well fails altogether.
        return _error_response(
            request,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"The quorum has the partition {METADATA_TOPIC}-0 only.",
        )
    if not quorum.is_leader:
        return _error_response(
            request, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node does not lead the quorum."
        )
    return _description(quorum.describe(), context.api_version >= FIRST_VERSION_WITH_DIRECTORIES)


def _error_response(
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
            replica_id=replica.node_id,
            replica_directory_id=replica.directory_id if with_directories else ZERO,
            log_end_offset=replica.end_offset,
            last_fetch_timestamp=replica.last_fetch_ms,
            last_caught_up_timestamp=replica.last_caught_up_ms,
        )
        for replica in replicas
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
