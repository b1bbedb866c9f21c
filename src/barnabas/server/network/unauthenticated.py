"""The connections whose clients are not authenticated yet, and what they may use until then."""

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.net.buffers import BufferPool
from barnabas.net.failure_log import FailureLog
from barnabas.server.network._pipeline import RequestPipeline
from barnabas.server.network.authentication import authentication_handlers
from barnabas.server.network.routes import RouteTable
from barnabas.server.quotas import RequestQuotas

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection
    from barnabas.server.nodes import BrokerNode, ControllerNode

log = logging.getLogger(__name__)

TIMEOUT_MS = 60_000
"""A client that is not authenticated after this time is disconnected."""

_BUFFER_BYTES = 32 << 20
"""Memory for incomplete frames of all these clients."""


class UnauthenticatedConnections:
    """A node's connections that have yet to authenticate.

    They share a small buffer pool, so that they cannot use up the memory of other clients, and a
    pipeline that has only the APIs of authentication.
    """

    def __init__(
        self, node: "BrokerNode | ControllerNode", loop: asyncio.AbstractEventLoop
    ) -> None:
        self._node = node
        self._loop = loop
        self.failures = FailureLog(log, loop.time)
        self._connected_ns: dict[ClientConnection, int] = {}  # in this order

    def __len__(self) -> int:
        return len(self._connected_ns)

    @cached_property
    def pipeline(self) -> RequestPipeline:
        routes = RouteTable(
            self._node.metrics,
            authentication_handlers(self._node.handlers),
            unserved="is not served before authentication; is security.protocol of the client "
            "the one of the listener?",
        )
        pipeline = RequestPipeline(self._node, self._loop, routes)
        # All these clients would share the quota of the user ANONYMOUS, and delay each other.
        pipeline.quotas = RequestQuotas()
        return pipeline

    @cached_property
    def buffers(self) -> BufferPool:
        return BufferPool(_BUFFER_BYTES)

    def add(self, connection: "ClientConnection") -> None:
        self._connected_ns[connection] = connection.received_ns

    def discard(self, connection: "ClientConnection") -> None:
        """Called when a client is authenticated, and when a connection is closed."""
        self._connected_ns.pop(connection, None)

    def close_overdue(self) -> None:
        """Closes the connections that have taken too long."""
        deadline_ns = self._node.monotonic_ns() - TIMEOUT_MS * 1_000_000
        for connection, connected_ns in list(self._connected_ns.items()):
            if connected_ns > deadline_ns:
                return
            connection.close()
