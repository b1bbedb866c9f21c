"""DescribeCluster (key 60): the cluster's id, its controller and its brokers.

v1 asks for brokers or controllers; v2 includes fenced brokers.
"""

from barnabas.server.authorized_operations import CLUSTER_OPERATIONS
from barnabas.server.call import Call
from barnabas.server.topic_view import endpoint_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS = 1
CONTROLLERS = 2


async def handle(request: DescribeClusterRequest, call: Call) -> DescribeClusterResponse:
    if request.endpoint_type not in (BROKERS, CONTROLLERS):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            f"There is no endpoint type {request.endpoint_type}: ask for {BROKERS} (brokers) "
            f"or {CONTROLLERS} (controllers).",
        )
    if request.endpoint_type == CONTROLLERS:
        raise KafkaError(
            ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            "This is a broker's listener: ask a controller's listener for the controllers.",
        )
    response = DescribeClusterResponse(
        cluster_id=call.broker.cluster_id,
        controller_id=call.broker.node_id,
        brokers=[
            DescribeClusterBroker(
                broker_id=broker.broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=broker.rack,
                is_fenced=broker.fenced,
            )
            for _, broker in sorted(call.broker.image.brokers.items())
            if (request.include_fenced_brokers or not broker.fenced)
            and (endpoint := endpoint_of(broker, call.listener))
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = CLUSTER_OPERATIONS
    return response
