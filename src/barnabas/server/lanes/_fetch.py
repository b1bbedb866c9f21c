# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The lane of Fetch: requests without a session, and those that continue one.

It looks at the request, the session and the partitions, and finds the records by the indexes. When
all of it is plain it changes what the handler would change, in the same order, and responds, or
waits for more bytes. What is rare or fails is declined; during the wait, it is handed over to the
handler.
"""

from __future__ import annotations

from barnabas.server.lanes._fetch_reads import PlainFetch
from barnabas.server.lanes._fetch_request import PlainFetchRequest
from barnabas.server.lanes._fetch_response import FetchResponseWriter
from barnabas.server.lanes._lane import DECLINED, DELAYED, RESPONDED, Lane
from barnabas.server.lanes.delayed_response import DelayedResponse
from barnabas.server.lanes.fetch_handover import FetchHandover
from barnabas.server.request_context import RequestContext
from barnabas.wire.apis import ApiKey

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Size = cython.typedef(cython.Py_ssize_t)

_DECLINED = DECLINED
_RESPONDED = RESPONDED
_DELAYED = DELAYED

_FETCH = ApiKey.FETCH.value


@cython.final
@cython.cclass
class FetchLane(Lane):
    """Serves plain fetches of consumers and followers."""

    def __init__(self, broker, metrics):
        Lane.__init__(self, metrics)
        self.broker = broker
        self.fetch_max_bytes = broker.settings["fetch.max.bytes"]

    def serve(self, request):
        start: Size = request.cursor.at
        requested: PlainFetchRequest = PlainFetchRequest()
        requested.broker = self.broker
        if not requested.parse(request.cursor, request):
            return _DECLINED
        if requested.session is not None:
            requested.add_dirty_partitions()
        requested.limit_bytes(self.fetch_max_bytes)
        if not requested.is_allowed(request):
            return _DECLINED
        fetch: PlainFetch = PlainFetch(requested)
        if not fetch.look():
            return _DECLINED
        if fetch.available_bytes >= requested.min_bytes or requested.max_wait_ms <= 0:
            fetch.apply()
            respond(fetch, request.sink, self.metrics.errors)
            return _RESPONDED
        if requested.is_follower and requested.session is None:
            return _DECLINED
        fetch.apply()
        body: bytes = bytes(request.cursor.view[start : request.cursor.end])
        self.delay(fetch, request, body)
        return _DELAYED

    def delay(self, fetch, request, body):
        """Waits for more bytes. The handler may need the body of the request."""
        context = RequestContext(
            _FETCH,
            request.version,
            request.correlation_id,
            request.client_id,
            request.connection,
            self.broker,
            request.received_ms,
            request.received_ns,
        )
        delayed: DelayedFetch = DelayedFetch(fetch, body, context, self.metrics)
        keys: list = fetch.begin_waiting()
        operation = self.broker.purgatory.delay(
            keys, fetch.request.max_wait_ms, delayed.on_change, "Fetch"
        )
        monotonic_ns = self.broker.monotonic_ns
        DelayedResponse(
            request, self.metrics, operation, delayed.write, monotonic_ns, allows_next_produce=False
        )


@cython.final
@cython.cclass
class DelayedFetch:
    """A plain fetch that waits for more bytes.

    A change of a partition has it read again. If it is not plain any more, the handler continues
    with what was read so far: `handover` is None before that.
    """

    def __init__(self, fetch, body, context, metrics):
        self.fetch = fetch
        self.body = body
        self.context = context
        self.metrics = metrics
        self.handover = None

    def on_change(self, key, readable_bytes):
        """Reads what has changed; returns whether the fetch is complete."""
        session = self.fetch.request.session
        if self.handover is not None:
            return self.handover.on_change(key, readable_bytes)
        self.read_again([key] if session is None else session.dirty.take_all())
        return self.fetch.is_complete if self.handover is None else self.handover.is_complete

    def write(self, sink):
        """Writes the response. If that takes longer, returns a future to call it again after."""
        session = self.fetch.request.session
        if self.handover is not None:
            return self.handover.write(sink)
        if session is not None:
            self.read_again(session.dirty.take_all())
        if self.handover is None and not self.fetch.request.is_still_allowed():
            self.hand_over()
        if self.handover is not None:
            return self.handover.finish()
        respond(self.fetch, sink, self.metrics.errors)
        return None

    def read_again(self, changed):
        for key in changed:
            if self.handover is None and not self.fetch.read_again(key):
                self.hand_over()
            if self.handover is not None:
                self.handover.read_again(key)

    def hand_over(self):
        self.handover = FetchHandover(self.fetch, self.body, self.context, self.metrics)


def respond(fetch, sink, errors):
    """Writes the body of the response, and counts its error codes: all are NONE."""
    reads: list = fetch.reads_to_return()
    errors[0] += 1 + len(reads)
    writer: FetchResponseWriter = FetchResponseWriter(fetch.request, sink)
    writer.write(reads)
