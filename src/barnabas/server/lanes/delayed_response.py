"""The response of a lane that waits: for other replicas, or for more records."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from barnabas.server.lanes._lane import LaneRequest
from barnabas.server.metrics.registry import RequestMetrics
from barnabas.server.network._route import append_response
from barnabas.server.request_context import RequestContext
from barnabas.wire._cursor import Sink
from barnabas.wire.outgoing import Outgoing

log = logging.getLogger(__name__)

WriteResponse = Callable[[Sink], "int | asyncio.Future[Any]"]
"""Writes the body of the response to an empty sink, and counts its error codes. Returns where the
throttle time is. If it has to wait once more, it returns what for, and is called again then."""


class DelayedResponse:
    """Has the position of a lane's response from its creation on, and completes it later.

    A lane creates it as the last thing before it returns DELAYED. When `operation` is done, in a
    later turn of the loop, `write` is called, with the present state of the partitions to look at.
    If the client disconnects before that, the operation is cancelled instead.

    With `context.allows_next_produce`, the connection may start the next Produce request.
    """

    __slots__ = (
        "_context",
        "_delayed_ns",
        "_has_flexible_header",
        "_is_exempt",
        "_local_ns",
        "_metrics",
        "_operation",
        "_response",
        "_size_bytes",
        "_write",
        "allows_next_produce",
    )

    def __init__(
        self,
        request: LaneRequest,
        context: RequestContext,
        metrics: RequestMetrics,
        operation: "asyncio.Future[Any]",
        write: WriteResponse,
    ) -> None:
        connection = context.connection
        self._context = context
        self._has_flexible_header = request.has_flexible_response_header
        self._is_exempt = request.is_exempt
        self._size_bytes = request.size_bytes
        self._metrics = metrics
        self._operation = operation
        self._write = write
        self._delayed_ns = context.broker.monotonic_ns()
        self._local_ns = self._delayed_ns - request.began_ns
        self._response = connection.responses.reserve(metrics, request.received_ns)
        self.allows_next_produce = context.allows_next_produce
        connection.add_suspended(self)
        operation.add_done_callback(self._on_done)

    def abandon(self) -> None:
        """Called when the client disconnects."""
        self._operation.cancel()

    def _on_done(self, operation: "asyncio.Future[Any]") -> None:
        context, connection = self._context, self._context.connection
        ended_ns = context.broker.monotonic_ns()
        sink = Sink()
        if not connection.is_closed:
            try:
                operation.result()
                written = self._write(sink)
            except Exception as failure:
                log.error("Failed to handle a request from %s", connection, exc_info=failure)
                connection.close("internal error")
            else:
                if isinstance(written, asyncio.Future):
                    self._operation = written
                    written.add_done_callback(self._on_done)
                    return
                if context.broker.quotas.is_enabled:
                    self._throttle(sink, written)
        self._metrics.remote_ns.observe(ended_ns - self._delayed_ns)
        if connection.is_closed:
            return
        out = Outgoing()
        append_response(sink, context.correlation_id, self._has_flexible_header, out)
        connection.responses.complete(self._response, out, ended_ns)
        connection.remove_suspended(self)

    def _throttle(self, sink: Sink, throttle_at: int) -> None:
        context = self._context
        throttle_ms = context.broker.quotas.record(
            context.api_key,
            context.connection,
            context.client_id or "",
            size_bytes=self._size_bytes,
            handler_ns=self._local_ns,
            is_exempt=self._is_exempt,
            throttle_ms=sink.get_int32(throttle_at),
        )
        sink.patch_int32(throttle_at, throttle_ms)
