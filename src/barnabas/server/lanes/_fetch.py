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
from barnabas.server.lanes._lane import DECLINED, DELAYED, RESPONDED, Lane, LaneRequest
from barnabas.server.lanes.delayed_response import DelayedResponse
from barnabas.server.lanes.fetch_handover import FetchHandover
from barnabas.wire._cursor import Sink

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
        request.is_exempt = requested.is_follower
        quota: FetchQuota = None
        if request.quotas.is_enabled and request.quotas.fetch.is_enabled and not request.is_exempt:
            quota = FetchQuota(request)
            quota.limit(requested)
        fetch: PlainFetch = PlainFetch(requested)
        if not fetch.look():
            return _DECLINED
        if fetch.available_bytes >= requested.min_bytes or requested.max_wait_ms <= 0:
            if quota is not None and not quota.may_send(fetch):
                return _DECLINED
            fetch.apply()
            respond(fetch, request.sink, self.metrics.errors)
            return _RESPONDED
        if requested.is_follower and requested.session is None:
            return _DECLINED
        fetch.apply()
        body: bytes = bytes(request.cursor.view[start : request.cursor.end])
        self.delay(fetch, quota, request, body)
        return _DELAYED

    def delay(self, fetch, quota, request, body):
        """Waits for more bytes. The handler may need the body of the request."""
        context = request.context(self.broker)
        delayed: DelayedFetch = DelayedFetch(fetch, quota, body, context, self.metrics)
        keys: list = fetch.begin_waiting()
        operation = self.broker.purgatory.delay(
            keys, fetch.request.max_wait_ms, delayed.on_change, "Fetch"
        )
        DelayedResponse(request, context, self.metrics, operation, delayed.write)


@cython.final
@cython.cclass
class DelayedFetch:
    """A plain fetch that waits for more bytes.

    A change of a partition has it read again. If it is not plain any more, the handler continues
    with what was read so far: `handover` is None before that.
    """

    def __init__(self, fetch, quota, body, context, metrics):
        self.fetch = fetch
        self.quota = quota
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
        """Writes the response, which begins with the throttle time. If that takes longer, returns a
        future after which to call it again."""
        session = self.fetch.request.session
        if self.handover is not None:
            return self.handover.write(sink)
        if session is not None:
            self.read_again(session.dirty.take_all())
        if self.handover is None and not self.may_respond():
            self.hand_over()
        if self.handover is not None:
            return self.handover.finish()
        respond(self.fetch, sink, self.metrics.errors)
        return 0

    def may_respond(self):
        if not self.fetch.request.is_still_allowed():
            return False
        return self.quota is None or self.quota.may_send(self.fetch)

    def read_again(self, changed):
        for key in changed:
            if self.handover is None and not self.fetch.read_again(key):
                self.hand_over()
            if self.handover is not None:
                self.handover.read_again(key)

    def hand_over(self):
        quota = None if self.quota is None else self.quota.quota
        self.handover = FetchHandover(self.fetch, quota, self.body, self.context, self.metrics)


@cython.final
@cython.cclass
class FetchQuota:
    """The bytes that a consumer may fetch, while anybody has a quota of them."""

    def __init__(self, request: LaneRequest):
        self.quotas = request.quotas
        self.quota = request.quotas.fetch
        self.user = request.connection.principal.name
        self.client_id = request.client_id or ""

    def limit(self, requested):
        """Lets no response be larger than what the quota can ever allow."""
        limit = self.quota.burst_limit(self.user, self.client_id)
        if limit is not None:
            requested.limit_bytes(max(int(limit), 1))

    def may_send(self, fetch):
        """Records the size of the response, unless the client has to wait instead.

        The handler then responds without records. As it does, all that was read counts, also what
        a session does not return.
        """
        if self.quota.find(self.user, self.client_id) is None:
            return True
        sink: Sink = Sink()
        writer: FetchResponseWriter = FetchResponseWriter(fetch.request, sink)
        size_bytes = writer.measure(fetch.all_reads())
        now_ms = self.quotas.now_ms()
        return self.quota.try_record(self.user, self.client_id, size_bytes, now_ms)


def respond(fetch, sink, errors):
    """Writes the body of the response, and counts its error codes: all are NONE."""
    reads: list = fetch.reads_to_return()
    errors[0] += 1 + len(reads)
    writer: FetchResponseWriter = FetchResponseWriter(fetch.request, sink)
    writer.write(reads)
