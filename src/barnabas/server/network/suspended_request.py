"""A request whose handler awaits something: it keeps the position of its response."""

from typing import TYPE_CHECKING, Any

from barnabas.server.network._route import Route
from barnabas.server.network.suspended_handler import HandlerCoroutine, SuspendedHandler
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    import asyncio

    from barnabas.server.network._pipeline import RequestPipeline


class SuspendedRequest:
    """A request whose handler awaits something."""

    __slots__ = (
        "_context",
        "_handler",
        "_local_ns",
        "_pipeline",
        "_request",
        "_response",
        "_route",
        "_size_bytes",
        "_suspended_ns",
        "allows_next_produce",
    )

    def __init__(
        self,
        pipeline: "RequestPipeline",
        route: Route,
        request: Message,
        context: RequestContext,
        began_ns: int,
        size_bytes: int,
    ) -> None:
        self._pipeline = pipeline
        self._route = route
        self._request = request
        self._context = context
        self._response = context.connection.responses.reserve(route.metrics, context.received_ns)
        self._handler: SuspendedHandler | None = None
        self._suspended_ns = pipeline.clock.now_ns()
        self.allows_next_produce = context.allows_next_produce
        self._size_bytes = size_bytes
        self._local_ns = self._suspended_ns - began_ns
        route.metrics.local_ns.observe(self._local_ns)

    def start(
        self, coroutine: HandlerCoroutine, awaited: object, loop: "asyncio.AbstractEventLoop"
    ) -> None:
        self._context.connection.add_suspended(self)
        self._handler = SuspendedHandler(coroutine, awaited, self._on_end, loop)

    def abandon(self) -> None:
        """Called when the client disconnects."""
        if self._handler is not None:
            self._handler.abandon()

    def _on_end(self, response: Any, failure: BaseException | None) -> None:
        self._handler = None  # breaks a cycle, or a large request would wait for the collector
        context, route = self._context, self._route
        connection = context.connection
        ended_ns = self._pipeline.clock.now_ns()
        route.metrics.remote_ns.observe(ended_ns - self._suspended_ns)
        if connection.is_closed:
            return
        try:
            if failure is not None:
                response = self._pipeline.build_error_response(
                    route, self._request, context, failure
                )
            if self._pipeline.quotas.is_enabled:
                self._pipeline.quotas.throttle(
                    route, self._request, response, context, self._size_bytes, self._local_ns
                )
            out = None
            if response is not None:
                out = Outgoing()
                self._pipeline.encode(route, self._request, context, response, out)
        except ProtocolViolation as violation:
            connection.close(str(violation))
        else:
            connection.responses.complete(self._response, out, ended_ns)
            connection.remove_suspended(self)
