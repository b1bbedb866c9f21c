"""The context of one request: its header, its connection, when it arrived, and the node."""

from typing import TYPE_CHECKING, Any, cast

from barnabas.security.authorizer.model import OPERATIONS, AclOperation, Resource, ResourceType
from barnabas.security.principal import KafkaPrincipal
from barnabas.server.authorization import denied

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection
    from barnabas.server.nodes import BrokerNode, ControllerNode


_ALL_OPERATIONS = {
    resource_type: sum(1 << operation for operation in operations)
    for resource_type, operations in OPERATIONS.items()
}


class RequestContext:
    """What a handler needs besides the request itself."""

    __slots__ = (
        "allows_next_produce",
        "api_key",
        "api_version",
        "broker",
        "client_id",
        "connection",
        "correlation_id",
        "now_ms",
        "received_ns",
    )

    def __init__(
        self,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: "ClientConnection",
        node: Any,
        now_ms: int,
        received_ns: int,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.broker: BrokerNode = node  # on a controller's listener: `controller_node`
        self.now_ms = now_ms
        """The wall clock when the request arrived; it may have been delayed since."""
        self.received_ns = received_ns
        """The same time by the monotonic clock, of which only differences have a meaning."""
        self.allows_next_produce = False
        """Set by the Produce handler before it waits for replication: the records are appended,
        so the connection may start its next Produce request. The pipeline reads it when the
        handler first suspends; a handler that awaits anything else must not be overtaken."""

    def for_controller(self, node: "ControllerNode") -> "RequestContext":
        """Returns the context of the same request, forwarded within this process."""
        return RequestContext(
            self.api_key,
            self.api_version,
            self.correlation_id,
            self.client_id,
            self.connection,
            node,
            self.now_ms,
            self.received_ns,
        )

    @property
    def controller_node(self) -> "ControllerNode":
        """The node, for the handlers of a controller's listener."""
        return cast("ControllerNode", self.broker)

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def host(self) -> str:
        return self.connection.host

    @property
    def principal(self) -> KafkaPrincipal:
        return self.connection.principal

    def is_allowed(
        self, operation: AclOperation, resource: Resource, *, is_audited: bool = True
    ) -> bool:
        """Returns whether the client may perform an operation on a resource.

        A denial is not audited if another check can still allow the request, or if what is denied
        is only left out of a listing.
        """
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_allowed(
            self, operation, resource, is_audited=is_audited
        )

    def is_allowed_on_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Returns whether there may be a resource of the type on which it is allowed."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.is_allowed_on_any(self, operation, resource_type)

    def require_allowed(self, operation: AclOperation, resource: Resource) -> None:
        """Raises the AUTHORIZATION_FAILED error of the resource's type if it is not allowed."""
        if not self.is_allowed(operation, resource):
            raise denied(resource.type)

    def allowed_operations(self, resource: Resource) -> int:
        """Returns the allowed operations as the protocol's bit field: bit n has code n."""
        if self.broker.authorizer is None:
            return _ALL_OPERATIONS[resource.type]
        return sum(
            1 << operation
            for operation in OPERATIONS[resource.type]
            if self.is_allowed(operation, resource, is_audited=False)
        )
