"""From a frame to its response: header, route, lane or handler.

A lane (`server/lanes`) serves the plain requests of an API without message objects. What it
declines, and every other API, takes the general way: decode, handler, encode.

The response of a handler that returns without awaiting is encoded at once, without a Task. A
handler that awaits becomes a `SuspendedRequest`, which reserves the position of its response.

`RequestPipeline.handle` runs for every request: see docs/hot-path.md before adding to it.
"""

import asyncio
import logging
from struct import Struct, error
from typing import TYPE_CHECKING, Any

from barnabas.server.errors import error_of
from barnabas.server.lanes._lane import (
    DECLINED,
    RESPONDED,
    Lane,
    LaneRequest,
    append_response,
)
from barnabas.server.network.routes import Route, RouteTable
from barnabas.server.network.suspended_handler import HandlerCoroutine, SuspendedHandler
from barnabas.server.request_context import RequestContext
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.headers import read_request_header
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.server.network.connection import ClientConnection
    from barnabas.server.nodes import BrokerNode, ControllerNode

log = logging.getLogger(__name__)

_HEAD = Struct(">iih")
"""API key and version as one number, correlation id, length of the client id."""


class RequestPipeline:
    """Handles the requests of all connections of a node's listeners."""

    __slots__ = ("_lane_request", "_loop", "_node", "_routes", "monotonic_ns", "quotas")

    def __init__(
        self,
        node: "BrokerNode | ControllerNode",
        loop: asyncio.AbstractEventLoop,
        routes: RouteTable | None = None,
    ) -> None:
        self._node = node
        self._loop = loop
        self.monotonic_ns = node.monotonic_ns
        self.quotas = node.quotas
        self._routes = routes or RouteTable(node.metrics, node.handlers, node.lanes)
        self._lane_request = LaneRequest()

    def handle(self, connection: "ClientConnection", frame: memoryview) -> None:
        """Handles one request, or starts to. Raises ProtocolViolation if it cannot be read."""
        now_ns = self.monotonic_ns
        began_ns = now_ns()
        size = len(frame)
        try:
            code, correlation_id, client_id_bytes = _HEAD.unpack_from(frame)
        except error:
            raise ProtocolViolation(
                f"a request of {size} bytes is shorter than its header"
            ) from None
        route = self._routes.get(code)
        if route is None:
            route = self._routes.resolve(code)
        body = 10 + client_id_bytes if client_id_bytes > 0 else 10
        if body > size:
            raise ProtocolViolation(f"a client id of {client_id_bytes} bytes exceeds the request")
        client_id = connection.decode_client_id(frame[10:body]) if client_id_bytes >= 0 else None
        if route.has_flexible_header:
            if body < size and not frame[body]:
                body += 1
            else:
                _, body = read_request_header(frame)
        lane = route.lane
        if (
            lane is not None
            and not self.quotas.is_enabled
            and self._serve(
                lane, route, connection, client_id, correlation_id, frame, body, began_ns
            )
        ):
            return
        # Bytes after the request are ignored, as Kafka does: librdkafka sends some with a
        # Metadata request for all topics.
        request, _ = route.read(frame, body)
        received_ns = connection.received_ns
        context = RequestContext(
            route.key,
            route.version,
            correlation_id,
            client_id,
            connection,
            self._node,
            connection.received_ms,
            received_ns,
        )
        metrics = route.metrics
        metrics.requests[route.version] += 1
        metrics.request_bytes.observe(size)
        metrics.queue_ns.observe(began_ns - received_ns)
        coroutine = route.handle(request, context)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            response = returned.value
        except Exception as failure:
            response = self.build_error_response(route, request, context, failure)
        else:
            SuspendedRequest(self, route, request, context, began_ns, size).start(
                coroutine, awaited, self._loop
            )
            return
        ended_ns = now_ns()
        metrics.local_ns.observe(ended_ns - began_ns)
        if self.quotas.is_enabled:
            self.quotas.throttle(route, request, response, context, size, ended_ns - began_ns)
        if response is None:
            return
        responses = connection.responses
        out = responses.buffer()
        if out is not None:
            self.encode(route, request, context, response, out)
            responses.unsent.append((metrics, received_ns))
        else:
            out = Outgoing()
            self.encode(route, request, context, response, out)
            responses.complete(responses.reserve(metrics, received_ns), out, ended_ns)

    def _serve(
        self,
        lane: Lane,
        route: Route,
        connection: "ClientConnection",
        client_id: str | None,
        correlation_id: int,
        frame: memoryview,
        body: int,
        began_ns: int,
    ) -> bool:
        """Has a request served by its lane. Returns False if the lane declines."""
        request = self._lane_request
        request.connection = connection
        request.client_id = client_id
        request.version = route.version
        request.correlation_id = correlation_id
        request.has_flexible_response_header = route.has_flexible_response_header
        request.size_bytes = len(frame)
        request.received_ms = connection.received_ms
        request.received_ns = received_ns = connection.received_ns
        request.began_ns = began_ns
        request.sink.clear()
        request.cursor.open(frame, body)
        try:
            outcome = lane.serve(request)
        finally:
            request.cursor.close()
            request.connection = None
        if outcome == DECLINED:
            return False
        ended_ns = self.monotonic_ns()
        metrics = route.metrics
        metrics.requests[route.version] += 1
        metrics.request_bytes.observe(request.size_bytes)
        metrics.queue_ns.observe(began_ns - received_ns)
        metrics.local_ns.observe(ended_ns - began_ns)
        if outcome == RESPONDED:
            responses = connection.responses
            out = responses.buffer()
            if out is not None:
                append_response(
                    request.sink, correlation_id, route.has_flexible_response_header, out
                )
                responses.unsent.append((metrics, received_ns))
            else:
                out = Outgoing()
                append_response(
                    request.sink, correlation_id, route.has_flexible_response_header, out
                )
                responses.complete(responses.reserve(metrics, received_ns), out, ended_ns)
        return True

    def encode(
        self,
        route: Route,
        request: Message,
        context: RequestContext,
        response: Message,
        out: Outgoing,
    ) -> None:
        """Appends the frame of the response, or of an error response if it cannot be encoded."""
        try:
            route.encode(response, context.correlation_id, out)
        except Exception as failure:
            # Always a bug of the handler, also if it is a KafkaError: it set a field that this
            # version does not have.
            log.error("Cannot encode the %s v%d response: %s", route.name, route.version, failure)
            error_response = self.build_error_response(route, request, context, failure)
            if error_response is None:
                return
            response = error_response
            route.encode(response, context.correlation_id, out)
        route.count_errors(response)

    def build_error_response(
        self, route: Route, request: Message, context: RequestContext, failure: BaseException
    ) -> Message | None:
        """Returns the response for an exception of the handler, or None if none is expected."""
        if isinstance(failure, ProtocolViolation):
            raise failure
        code, message = error_of(failure, route.name, context)
        response = error_response(request, route.version, code, message)
        if response is None:
            # Only a closed connection makes a producer with acks=0, which reads no responses,
            # look for the partition's leader again.
            context.connection.close(f"{route.name} with acks=0 failed: {code.name} {message}")
        return response


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
        pipeline: RequestPipeline,
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
        self._suspended_ns = pipeline.monotonic_ns()
        self.allows_next_produce = context.allows_next_produce
        self._size_bytes = size_bytes
        self._local_ns = self._suspended_ns - began_ns
        route.metrics.local_ns.observe(self._local_ns)

    def start(
        self, coroutine: HandlerCoroutine, awaited: object, loop: asyncio.AbstractEventLoop
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
        ended_ns = self._pipeline.monotonic_ns()
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
