"""From a frame to its answer: header, route, decode, handler, encode.

A handler that returns from its first step is answered here and now, without a Task. One that
awaits becomes an `Exchange`, which holds the place of its answer until the handler ends.
"""

import asyncio
import logging
from struct import Struct, error
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.server.errors import failure_of
from barnabas.server.network.routes import Route, Routes
from barnabas.server.network.suspended_handler import HandlerCoroutine, Suspended
from barnabas.server.purgatory import Parked
from barnabas.server.request_context import Call
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.headers import read_request_header
from barnabas.wire.outgoing import Outgoing
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker
    from barnabas.server.controller_node import ControllerNode
    from barnabas.server.network.connection import Connection

log = logging.getLogger(__name__)

_HEAD = Struct(">iih")
"""API key and version as one number, correlation id, length of the client id."""


class Pipeline:
    """Handles the frames of every connection of a node's listeners."""

    __slots__ = ("_loop", "_node", "_routes")

    def __init__(
        self,
        node: "Broker | ControllerNode",
        loop: asyncio.AbstractEventLoop,
        routes: Routes | None = None,
    ) -> None:
        self._node = node
        self._loop = loop
        self._routes = routes or Routes(node.metrics, node.handlers)

    def handle(self, connection: "Connection", frame: memoryview) -> None:
        """Answer one frame, or begin to. ProtocolViolation if there is no making sense of it."""
        began_ns = perf_counter_ns()
        size = len(frame)
        try:
            code, correlation_id, client_id_bytes = _HEAD.unpack_from(frame)
        except error:
            raise ProtocolViolation(f"{size} bytes are too few for a request") from None
        route = self._routes.get(code)
        if route is None:
            route = self._routes.find(code)
        body = 10 + client_id_bytes if client_id_bytes > 0 else 10
        if body > size:
            raise ProtocolViolation(f"the client id claims {client_id_bytes} bytes, past the frame")
        client_id = connection.client_id_of(frame[10:body]) if client_id_bytes >= 0 else None
        if route.flexible:
            if body < size and not frame[body]:
                body += 1
            else:
                _, body = read_request_header(frame)
        # Bytes after the request are let pass, as Kafka does: librdkafka sends some with a
        # Metadata request for all topics.
        request, _ = route.read(frame, body)
        received_ns = connection.received_ns
        call = Call(
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
        coroutine = route.handle(request, call)
        try:
            awaited = coroutine.send(None)
        except StopIteration as returned:
            response = returned.value
        except Exception as failure:
            response = self.failed(route, request, call, failure)
        else:
            Exchange(self, route, request, call, began_ns).begin(coroutine, awaited, self._loop)
            return
        ended_ns = perf_counter_ns()
        metrics.local_ns.observe(ended_ns - began_ns)
        if response is None:
            return
        outbox = connection.outbox
        out = outbox.tail()
        if out is not None:
            self.encode(route, request, call, response, out)
            outbox.unsent.append((metrics, received_ns))
        else:
            out = Outgoing()
            self.encode(route, request, call, response, out)
            outbox.finish(outbox.reserve(metrics, received_ns), out, ended_ns)

    def encode(
        self, route: Route, request: Message, call: Call, response: Message, out: Outgoing
    ) -> None:
        """Append the answer's frame; if it cannot be written, the error that says so."""
        try:
            route.encode(response, call.correlation_id, out)
        except Exception as failure:
            # Always a fault of the handler, also where it is a KafkaError: a field was set that
            # this version has no place for.
            log.error("%s v%d cannot be answered: %s", route.name, route.version, failure)
            instead = self.failed(route, request, call, failure)
            if instead is None:
                return
            response = instead
            route.encode(response, call.correlation_id, out)
        route.count_errors(response)

    def failed(
        self, route: Route, request: Message, call: Call, failure: BaseException
    ) -> Message | None:
        """The answer that tells of a handler's exception."""
        if isinstance(failure, ProtocolViolation):
            raise failure
        code, message = failure_of(failure, route.name, call)
        response = error_response(request, route.version, code, message)
        if response is None:
            # Nobody listens for an answer: only a closed connection makes a producer with
            # acks=0 look for the partition's leader again.
            call.connection.close(f"{route.name} with acks=0 failed: {code.name} {message}")
        return response


class Exchange:
    """A request whose handler suspended."""

    __slots__ = (
        "_answer",
        "_call",
        "_pipeline",
        "_request",
        "_route",
        "_suspended",
        "_suspended_ns",
        "lets_pass",
    )

    def __init__(
        self, pipeline: Pipeline, route: Route, request: Message, call: Call, began_ns: int
    ) -> None:
        self._pipeline = pipeline
        self._route = route
        self._request = request
        self._call = call
        self._answer = call.connection.outbox.reserve(route.metrics, call.received_ns)
        self._suspended: Suspended | None = None
        self._suspended_ns = perf_counter_ns()
        self.lets_pass = False
        """Whether the next request may begin before this one ends, if it is of the same kind."""
        route.metrics.local_ns.observe(self._suspended_ns - began_ns)

    def begin(
        self, coroutine: HandlerCoroutine, awaited: object, loop: asyncio.AbstractEventLoop
    ) -> None:
        # What is parked has been appended; what waits for anything else must not be overtaken.
        self.lets_pass = self._route.is_produce and isinstance(awaited, Parked)
        self._call.connection.await_exchange(self)
        self._suspended = Suspended(coroutine, awaited, self._ended, loop)

    def abandon(self) -> None:
        """The client went away."""
        if self._suspended is not None:
            self._suspended.abandon()

    def _ended(self, response: Any, failure: BaseException | None) -> None:
        self._suspended = None  # it holds this one: a large request is not to wait for the gc
        call, route = self._call, self._route
        connection = call.connection
        ended_ns = perf_counter_ns()
        route.metrics.remote_ns.observe(ended_ns - self._suspended_ns)
        if connection.is_closed:
            return
        try:
            if failure is not None:
                response = self._pipeline.failed(route, self._request, call, failure)
            out = None
            if response is not None:
                out = Outgoing()
                self._pipeline.encode(route, self._request, call, response, out)
        except ProtocolViolation as violation:
            connection.close(str(violation))
        else:
            connection.outbox.finish(self._answer, out, ended_ns)
            connection.end_exchange(self)
