"""The cluster: its brokers or controllers, and the API versions that they serve."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.enums import AclOperation
from barnabas.client.admin.model import Node, as_operations, operations_from_bits
from barnabas.client.admin.requests import AdminRequests, one_request_per_item
from barnabas.client.admin.results import Results, raise_on_error
from barnabas.client.admin.validation import UNSET
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.messages.api_versions import ApiVersion
from barnabas.wire.messages.metadata import BROKERS, CONTROLLERS, DescribeClusterRequest
from barnabas.wire.messages.registrations import UnregisterBrokerRequest


@dataclass(slots=True, eq=False)
class DescribeClusterResult:
    """The nodes of a cluster. `fenced` has the ids of brokers that are registered but fenced."""

    controller: Node | None
    nodes: list[Node]
    cluster_id: str | None = None
    authorized_operations: list[AclOperation] | None = None
    fenced: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authorized_operations = as_operations(self.authorized_operations)


def describe_cluster(
    admin: AdminRequests,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, DescribeClusterResult]:
    """Returns the brokers, or with `bootstrap.controllers` the controllers, of the cluster.

    `include_fenced_brokers` adds brokers that are registered but not in service.
    """
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=_endpoint_type(admin),
        include_fenced_brokers=include_fenced_brokers,
    )
    return _describe_cluster(admin, request, admin.deadline(request_timeout))


def _endpoint_type(admin: AdminRequests) -> int:
    return CONTROLLERS if admin.has_controllers else BROKERS


async def _describe_cluster(
    admin: AdminRequests, request: DescribeClusterRequest, deadline: Deadline
) -> DescribeClusterResult:
    response = await admin.send(request, deadline=deadline)
    raise_on_error(response.error_code, response.error_message)
    nodes = [
        Node(broker.broker_id, broker.host, broker.port, broker.rack) for broker in response.brokers
    ]
    return DescribeClusterResult(
        next((node for node in nodes if node.id == response.controller_id), None),
        nodes,
        response.cluster_id,
        operations_from_bits(response.cluster_authorized_operations),
        [broker.broker_id for broker in response.brokers if broker.is_fenced],
    )


def describe_api_versions(
    admin: AdminRequests, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[Node, list[ApiVersion]]]:
    """Returns the APIs that each broker serves, with their version ranges, by broker."""
    return _describe_api_versions(admin, admin.deadline(request_timeout))


async def _describe_api_versions(
    admin: AdminRequests, deadline: Deadline
) -> Results[Node, list[ApiVersion]]:
    request = DescribeClusterRequest(endpoint_type=_endpoint_type(admin))
    cluster = await _describe_cluster(admin, request, deadline)

    async def fetch_versions(node: int | None, _: Node) -> list[ApiVersion] | KafkaError:
        response = await admin.send(API_VERSIONS_REQUEST, node, deadline=deadline)
        if response.error_code:
            return broker_error(response.error_code)
        versions: list[ApiVersion] = response.api_keys
        return versions

    brokers = {node: node.id for node in cluster.nodes}
    return await admin.route_to_brokers(brokers, one_request_per_item(fetch_versions), deadline)


def unregister_broker(
    admin: AdminRequests, broker_id: int, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, None]:
    """Removes the registration of a broker that is shut down and will not come back."""
    return _unregister_broker(admin, broker_id, admin.deadline(request_timeout))


async def _unregister_broker(admin: AdminRequests, broker_id: int, deadline: Deadline) -> None:
    request = UnregisterBrokerRequest(broker_id=broker_id)
    await admin.send_to_controller(request, deadline)
