"""The response of a lane that waits: for other replicas, or for more records."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.server.lanes._lane import LaneRequest
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network._route import append_response
from barnabas.wire._cursor import Sink
from barnabas.wire.outgoing import Outgoing

if TYPE_CHECKING:
    from barnabas.server.network._connection import ClientConnection

log = logging.getLogger(__name__)

WriteResponse = Callable[[Sink], "asyncio.Future[Any] | None"]
"""Writes the body of the response to an empty sink, and counts its error codes. If it has to wait
once more, it returns what for, writes nothing, and is called again then."""


class DelayedResponse:
    """Has the position of a lane's response from its creation on, and completes it later.

    A lane creates it as the last thing before it returns DELAYED. When `operation` is done, in a
    later turn of the loop, `write` is called, with the present state of the partitions to look at.
    If the client disconnects before that, the operation is cancelled instead.

    `allows_next_produce` says that the records of a Produce request are appended already: the
    connection may start the next one.
    """

    __slots__ = (
        "_connection",
        "_correlation_id",
        "_delayed_ns",
        "_has_flexible_header",
        "_metrics",
        "_monotonic_ns",
        "_operation",
        "_response",
        "_write",
        "allows_next_produce",
    )

    def __init__(
        self,
        request: LaneRequest,
        metrics: RequestMetrics,
        operation: "asyncio.Future[Any]",
        write: WriteResponse,
        monotonic_ns: Callable[[], int],
        *,
        allows_next_produce: bool,
    ) -> None:
        self.allows_next_produce = allows_next_produce
        self._connection: ClientConnection = request.connection
        self._correlation_id = request.correlation_id
        self._has_flexible_header = request.has_flexible_response_header
        self._metrics = metrics
        self._operation = operation
        self._write = write
        self._monotonic_ns = monotonic_ns
        self._delayed_ns = monotonic_ns()
        self._response = self._connection.responses.reserve(metrics, request.received_ns)
        self._connection.add_suspended(self)
        operation.add_done_callback(self._on_done)

    def abandon(self) -> None:
        """Called when the client disconnects."""
        self._operation.cancel()

    def _on_done(self, operation: "asyncio.Future[Any]") -> None:
        ended_ns = self._monotonic_ns()
        connection = self._connection
        sink = Sink()
        if not connection.is_closed:
            try:
                operation.result()
                another = self._write(sink)
            except Exception as failure:
                log.error("Failed to handle a request from %s", connection, exc_info=failure)
                connection.close("internal error")
            else:
                if another is not None:
                    self._operation = another
                    another.add_done_callback(self._on_done)
                    return
        self._metrics.remote_ns.observe(ended_ns - self._delayed_ns)
        if connection.is_closed:
            return
        out = Outgoing()
        append_response(sink, self._correlation_id, self._has_flexible_header, out)
        connection.responses.complete(self._response, out, ended_ns)
        connection.remove_suspended(self)
