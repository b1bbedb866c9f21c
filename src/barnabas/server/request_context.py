"""The context of one request: its header, its connection, when it arrived, and the node."""

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from barnabas.server.network.connection import ClientConnection
    from barnabas.server.nodes import BrokerNode, ControllerNode


class RequestContext:
    """What a handler needs besides the request itself."""

    __slots__ = (
        "allows_next_produce",
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
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        connection: "ClientConnection",
        node: Any,
        now_ms: int,
        received_ns: int,
    ) -> None:
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
    def principal(self) -> str:
        return self.connection.principal
