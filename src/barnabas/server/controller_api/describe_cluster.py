"""DescribeCluster (key 60) on a controller's listener: the controllers (KIP-919).

v1 requests brokers or controllers.
"""

from barnabas.metadata.states import endpoint_of
from barnabas.server.api.describe_cluster import require_endpoint_type
from barnabas.server.cluster_view import CLUSTER_OPERATIONS
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.describe_cluster import (
    CONTROLLERS,
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

NO_CONTROLLER = -1


async def handle(
    request: DescribeClusterRequest, context: RequestContext
) -> DescribeClusterResponse:
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
            if (endpoint := endpoint_of(controller, context.listener))
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
