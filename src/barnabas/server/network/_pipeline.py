# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""From a frame to its response: header, route, lane or handler.

A lane (`server/lanes`) serves the plain requests of an API without message objects. What it
declines, and every other API, takes the general way: decode, handler, encode. The response of a
handler that returns without awaiting is encoded at once, without a Task. A handler that awaits
becomes a `SuspendedRequest`, which reserves the position of its response.

`RequestPipeline.handle_request` runs for every request: see docs/hot-path.md before adding to it.
"""

from __future__ import annotations

import logging

from barnabas.server.errors import error_of
from barnabas.server.lanes._lane import DECLINED, DELAYED, RESPONDED, LaneRequest
from barnabas.server.network._clock import ServerClock
from barnabas.server.network._route import append_response
from barnabas.server.network.routes import RouteTable
from barnabas.server.network.suspended_request import SuspendedRequest
from barnabas.server.request_context import RequestContext
from barnabas.wire.error_response import error_response
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.headers import read_request_header
from barnabas.wire.outgoing import Outgoing

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.server.network._system import (
        PYGEN_RETURN,
        PyIter_Send,
        get_int32,
    )
    from cython.cimports.cpython.bytes import (
        PyBytes_AS_STRING,
        PyBytes_FromStringAndSize,
        PyBytes_GET_SIZE,
    )
    from cython.cimports.cpython.ref import Py_DECREF, PyObject
    from cython.cimports.libc.string import memcmp

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

log = logging.getLogger(__name__)

_DECLINED = cython.declare(cython.Py_ssize_t, DECLINED)
_RESPONDED = cython.declare(cython.Py_ssize_t, RESPONDED)
_DELAYED = cython.declare(cython.Py_ssize_t, DELAYED)

_HEADER_BYTES = cython.declare(cython.Py_ssize_t, 10)
"""API key, version, correlation id, length of the client id."""


@cython.cclass
class RequestSource:
    """What the pipeline needs of a connection: its responses, and when its last bytes arrived.

    `received_ns` is by the monotonic clock, of which only differences have a meaning.
    """

    def __init__(self, responses):
        self.responses = responses
        self.received_ns = self.received_ms = 0
        self.client_id = ""
        self.client_id_bytes = b""

    @property
    def last_client_id(self):
        """The client id of the last request that had one."""
        return self.client_id

    def decode_client_id(self, encoded, size):
        """Returns the client id of a request header; nearly always that of the previous request."""
        if cython.compiled:
            if PyBytes_GET_SIZE(self.client_id_bytes) == size and (
                memcmp(PyBytes_AS_STRING(self.client_id_bytes), encoded, size) == 0
            ):
                return self.client_id
            raw: bytes = PyBytes_FromStringAndSize(cython.cast(cython.p_char, encoded), size)
        else:
            raw = bytes(encoded[:size])
        try:
            self.client_id = raw.decode()
        except UnicodeDecodeError:
            raise ProtocolViolation("the client id is not UTF-8") from None
        self.client_id_bytes = raw
        return self.client_id


@cython.final
@cython.cclass
class RequestPipeline:
    """Handles the requests of all connections of a node's listeners."""

    def __init__(self, node, loop, routes=None):
        self.node = node
        self.loop = loop
        self.clock = ServerClock(node.clock, node.monotonic_ns)
        self.quotas = node.quotas
        self.routes = routes or RouteTable(node.metrics, node.handlers, node.lanes)
        self.lane_request = LaneRequest()
        self.last_code = 0
        self.last_route = None

    def handle(self, source, frame):
        """Handles one request, or starts to. Raises ProtocolViolation if it cannot be read."""
        size: Size = len(frame)
        if cython.compiled:
            if not size:
                raise _too_short(0)
            content: cython.const[cython.uchar][::1] = frame
            self.handle_request(source, frame, cython.address(content[0]), size)
        else:
            self.handle_request(source, frame, frame, size)

    def handle_request(self, source, frame, data, size):
        """Does the same for a caller that knows the address of the frame's bytes."""
        began_ns: Long = self.clock.now_ns()
        if size < _HEADER_BYTES:
            raise _too_short(size)
        code: cython.int = _int32(data, 0)
        correlation_id: cython.int = _int32(data, 4)
        client_id_bytes: cython.int = _int16(data, 8)
        route = self.last_route
        if route is None or code != self.last_code:
            route = self.find_route(code)
        client_id: str = None
        body: Size = _HEADER_BYTES
        if client_id_bytes >= 0:
            body += client_id_bytes
            if body > size:
                raise ProtocolViolation(
                    f"a client id of {client_id_bytes} bytes exceeds the request"
                )
            if cython.compiled:
                client_id = source.decode_client_id(data + _HEADER_BYTES, client_id_bytes)
            else:
                client_id = source.decode_client_id(data[_HEADER_BYTES:body], client_id_bytes)
        if route.has_flexible_header:
            if body < size and not data[body]:
                body += 1
            else:
                body = read_request_header(frame)[1]
        if route.lane is not None and self.serve(
            route, source, client_id, correlation_id, frame, data, body, size, began_ns
        ):
            return
        # Bytes after the request are ignored, as Kafka does: librdkafka sends some with a
        # Metadata request for all topics.
        request = route.read(frame, body)[0]
        received_ns: Long = source.received_ns
        context = RequestContext(
            route.key,
            route.version,
            correlation_id,
            client_id,
            source,
            self.node,
            source.received_ms,
            received_ns,
        )
        metrics = route.metrics
        metrics.count(route.version, size, began_ns - received_ns)
        coroutine = route.handle(request, context)
        has_returned: cython.bint
        try:
            if cython.compiled:
                result: cython.pointer[PyObject] = cython.NULL
                has_returned = PyIter_Send(coroutine, None, cython.address(result)) == PYGEN_RETURN
                response = cython.cast(object, result)
                Py_DECREF(response)  # `response` refers to it once more
            else:
                has_returned, response = _step(coroutine)
        except Exception as failure:
            has_returned = True
            response = self.build_error_response(route, request, context, failure)
        if not has_returned:
            SuspendedRequest(self, route, request, context, began_ns, size).start(
                coroutine, response, self.loop
            )
            return
        ended_ns: Long = self.clock.now_ns()
        metrics.local_ns.observe(ended_ns - began_ns)
        if self.quotas.is_enabled:
            self.quotas.throttle(route, request, response, context, size, ended_ns - began_ns)
        if response is None:
            return
        responses = source.responses
        out = responses.buffer()
        if out is not None:
            self.encode(route, request, context, response, out)
            responses.add_unsent(metrics, received_ns)
        else:
            out = Outgoing()
            self.encode(route, request, context, response, out)
            responses.complete(responses.reserve(metrics, received_ns), out, ended_ns)

    def find_route(self, code):
        """Returns the route of an API and version, which is often that of the next request too."""
        route = self.routes.get(code)
        if route is None:
            route = self.routes.resolve(code)
        self.last_code = code
        self.last_route = route
        return route

    def serve(self, route, source, client_id, correlation_id, frame, data, body, size, began_ns):
        """Has a request served by its lane. Returns False if the lane declines."""
        request = self.lane_request
        request.connection = source
        request.client_id = client_id
        request.quotas = self.quotas
        request.key = route.key
        request.version = route.version
        request.correlation_id = correlation_id
        request.has_flexible_response_header = route.has_flexible_response_header
        request.received_ms = source.received_ms
        request.received_ns = received_ns = source.received_ns
        request.began_ns = began_ns
        request.size_bytes = size
        request.throttle_at = 0
        request.is_exempt = False
        request.sink.clear()
        request.cursor.open_data(frame, data, body, size)
        try:
            outcome: cython.int = route.lane.serve(request)
        finally:
            request.cursor.close()
            request.connection = None
        if outcome == _DECLINED:
            return False
        ended_ns: Long = self.clock.now_ns()
        metrics = route.metrics
        metrics.count(route.version, size, began_ns - received_ns)
        metrics.local_ns.observe(ended_ns - began_ns)
        if outcome != _DELAYED and self.quotas.is_enabled:
            throttle_ms: cython.int = self.quotas.record(
                route.key,
                source,
                client_id or "",
                size_bytes=size,
                handler_ns=ended_ns - began_ns,
                is_exempt=request.is_exempt,
            )
            if throttle_ms > 0 and outcome == _RESPONDED and request.throttle_at >= 0:
                request.sink.patch_int32(request.throttle_at, throttle_ms)
        if outcome == _RESPONDED:
            is_flexible: cython.bint = route.has_flexible_response_header
            responses = source.responses
            out = responses.buffer()
            if out is not None:
                append_response(request.sink, correlation_id, is_flexible, out)
                responses.add_unsent(metrics, received_ns)
            else:
                out = Outgoing()
                append_response(request.sink, correlation_id, is_flexible, out)
                responses.complete(responses.reserve(metrics, received_ns), out, ended_ns)
        return True

    def encode(self, route, request, context, response, out):
        """Appends the frame of the response, or of an error response if it cannot be encoded."""
        try:
            route.encode(response, context.correlation_id, out)
        except Exception as failure:
            # Always a bug of the handler, also if it is a KafkaError: it set a field that this
            # version does not have.
            log.error("Cannot encode the %s v%d response: %s", route.name, route.version, failure)
            response = self.build_error_response(route, request, context, failure)
            if response is None:
                return
            route.encode(response, context.correlation_id, out)
        route.count_errors(response)

    def build_error_response(self, route, request, context, failure):
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


def _step(coroutine):
    """Returns whether a handler has returned, and what it returned or awaits."""
    try:
        return False, coroutine.send(None)
    except StopIteration as returned:
        return True, returned.value


def _too_short(size):
    return ProtocolViolation(f"a request of {size} bytes is shorter than its header")


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int32(data: Data, at: Size) -> cython.int:
    if cython.compiled:
        return get_int32(data + at)
    return int.from_bytes(data[at : at + 4], "big", signed=True)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int16(data: Data, at: Size) -> cython.int:
    value: cython.int = (data[at] << 8) | data[at + 1]
    return value - ((value & 0x8000) << 1)
