"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

v1 asks for brokers or controllers; v2 includes fenced brokers.
"""

from barnabas.metadata.states import endpoint_of
from barnabas.server.cluster_view import CLUSTER_OPERATIONS
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import (
    BROKERS,
    CONTROLLERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_OF = {BROKERS: "a broker", CONTROLLERS: "a controller"}


async def handle(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
    require_endpoint_type(request.endpoint_type, BROKERS)
    response = DescribeClusterResponse(
        cluster_id=context.broker.cluster_id,
        controller_id=context.broker.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for _, broker in sorted(context.broker.image.brokers.items())
            if (request.include_fenced_brokers or not broker.fenced)
            and (endpoint := endpoint_of(broker, context.listener))
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response


def require_endpoint_type(asked: int, served: int) -> None:
    """Each kind of listener tells of its own kind (KIP-919)."""
    if asked not in _OF:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"There is no endpoint type {asked}: ask for {BROKERS} (brokers) "
            f"or {CONTROLLERS} (controllers).",
        )
    if asked != served:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"This is {_OF[served]}'s listener: ask {_OF[asked]}'s listener for endpoints of "
            f"type {asked}.",
        )
