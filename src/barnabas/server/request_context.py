"""One request as its handler sees it: who sent it, when, and the node it is asked of."""

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker
    from barnabas.server.controller_node import ControllerNode
    from barnabas.server.network.connection import Connection


class Call:
    """What a handler may want to know beside the request itself."""

    __slots__ = (
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
        connection: "Connection",
        node: "Broker | ControllerNode",
        now_ms: int,
        received_ns: int,
    ) -> None:
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.broker: Broker = node  # type: ignore[assignment]  # or `controller_node`
        self.now_ms = now_ms
        """Wall clock at the wake-up that brought the request; it may since have been parked."""
        self.received_ns = received_ns
        """The same moment on a monotonic clock that only differences make sense of."""

    def asked_of(self, node: "ControllerNode") -> "Call":
        """The same call of the same client, passed on within this process."""
        return Call(
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
        """Whom the request is asked of, for handlers of a controller's listener."""
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
