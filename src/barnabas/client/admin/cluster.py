"""The cluster itself: its brokers or controllers, and what each of them speaks."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, raise_failure
from barnabas.client.admin.enums import AclOperation
from barnabas.client.admin.model import Node, as_operations, operations_of
from barnabas.client.admin.routes import one_by_one
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.net.greeting import ASK_VERSIONS
from barnabas.wire.messages.api_versions import ApiVersion
from barnabas.wire.messages.describe_cluster import (
    BROKERS,
    CONTROLLERS,
    DescribeClusterRequest,
)
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest


@dataclass(slots=True, eq=False)
class DescribeClusterResult:
    """Who is there. `fenced` are ids of brokers that are registered but may not lead."""

    controller: Node | None
    nodes: list[Node]
    cluster_id: str | None = None
    authorized_operations: list[AclOperation] | None = None
    fenced: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authorized_operations = as_operations(self.authorized_operations)


class ClusterCalls(Calls):
    def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, DescribeClusterResult]:
        """The brokers, or with `bootstrap.controllers` the controllers."""
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=include_authorized_operations,
            endpoint_type=self._endpoint_type(),
            include_fenced_brokers=include_fenced_brokers,
        )
        return self._describe_cluster(request, self._deadline(request_timeout))

    def _endpoint_type(self) -> int:
        return CONTROLLERS if self._routes.has_controllers else BROKERS

    async def _describe_cluster(
        self, request: DescribeClusterRequest, deadline: Deadline
    ) -> DescribeClusterResult:
        told = await self._routes.ask(request, deadline=deadline)
        raise_failure(told.error_code, told.error_message)
        nodes = [Node(each.broker_id, each.host, each.port, each.rack) for each in told.brokers]
        return DescribeClusterResult(
            next((node for node in nodes if node.id == told.controller_id), None),
            nodes,
            told.cluster_id,
            operations_of(told.cluster_authorized_operations),
            [each.broker_id for each in told.brokers if each.is_fenced],
        )

    def describe_api_versions(
        self, *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[Node, list[ApiVersion]]]:
        """Which APIs every broker speaks, and in which versions."""
        return self._describe_api_versions(self._deadline(request_timeout))

    async def _describe_api_versions(self, deadline: Deadline) -> Results[Node, list[ApiVersion]]:
        request = DescribeClusterRequest(endpoint_type=self._endpoint_type())
        cluster = await self._describe_cluster(request, deadline)

        async def spoken(node: int | None, _: Node) -> list[ApiVersion] | KafkaError:
            told = await self._routes.ask(ASK_VERSIONS, node, deadline=deadline)
            if told.error_code:
                return told_by_broker(told.error_code)
            versions: list[ApiVersion] = told.api_keys
            return versions

        brokers = {node: node.id for node in cluster.nodes}
        return Results(await self._routes.by_broker(brokers, one_by_one(spoken), deadline))

    def unregister_broker(
        self, broker_id: int, *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, None]:
        """Have the cluster forget a broker that will not come back."""
        return self._unregister_broker(broker_id, self._deadline(request_timeout))

    async def _unregister_broker(self, broker_id: int, deadline: Deadline) -> None:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        await self._routes.ask_controller(request, deadline)
