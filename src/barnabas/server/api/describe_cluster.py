"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

v1 requests brokers or controllers; v2 includes fenced brokers.
"""

from barnabas.server.cluster_view import client_endpoint, cluster_operations
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.metadata import (
    BROKERS,
    CONTROLLERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_ENDPOINT_TYPES = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


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
            and (endpoint := client_endpoint(broker, context))
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = cluster_operations(context)
    return response


def require_endpoint_type(requested: int, served: int) -> None:
    """Raises KafkaError unless this listener serves the requested endpoints (KIP-919)."""
    if requested not in _ENDPOINT_TYPES:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"Unsupported endpoint type {requested}",
        )
    if requested != served:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            f"The request was sent to an endpoint of type {_ENDPOINT_TYPES[served]}, but we wanted "
            f"an endpoint of type {_ENDPOINT_TYPES[requested]}",
        )
