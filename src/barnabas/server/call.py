"""One request as its handler sees it: who sent it, when, and the broker it is asked of."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.server.broker import Broker
    from barnabas.server.connection import Connection


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
        broker: "Broker",
        now_ms: int,
        received_ns: int,
    ) -> None:
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.broker = broker
        self.now_ms = now_ms
        """Wall clock at the wake-up that brought the request; it may since have been parked."""
        self.received_ns = received_ns
        """The same moment on a monotonic clock that only differences make sense of."""

    @property
    def listener(self) -> str:
        return self.connection.listener

    @property
    def host(self) -> str:
        return self.connection.host

    @property
    def principal(self) -> str:
        return self.connection.principal
