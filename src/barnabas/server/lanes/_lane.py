# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""What a lane is given, and what it returns.

A lane serves the plain requests of one API from the frame to the bytes of the response, without
message objects. It first looks at everything and changes nothing. Only when all of the request is
plain does it act; otherwise it declines, and the handler of the API serves the request. Both give
the same response, the same log and the same metrics.

`RequestPipeline` calls lanes, and does for each outcome what it does for a handler: it counts the
request by version, and records its size, its queue time and its local time. For a response it
also records the send time and the total time. The lane counts what is inside: the error codes of
the response (`metrics.errors`), and the metrics of topics.

The pipeline also counts the request for the quotas of its client, and writes the throttle time over
that of the lane, which is 0.

No lane is called for a connection that is not authenticated yet.
"""

from __future__ import annotations

from barnabas.server.request_context import RequestContext
from barnabas.wire._cursor import Cursor, Sink

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

DECLINED = 0
"""Nothing was changed: the handler serves the request. The sink may have any content."""

RESPONDED = 1
"""`LaneRequest.sink` has the body of the response, without its header."""

NO_RESPONSE = 2
"""The request is served, and its client expects no response. If it failed, the lane has closed the
connection with the reason, as `RequestPipeline.build_error_response` does."""

DELAYED = 3
"""A `DelayedResponse` has the position of the response, and completes it later."""

NO_THROTTLE_TIME = -1
"""`LaneRequest.throttle_at` of responses without this field, which are those of old versions."""


@cython.final
@cython.cclass
class LaneRequest:
    """The request that is being served. A pipeline has one, which is valid during `serve` only.

    So are the views of the frame, as those of a handler are until its first await.

    A lane sets `throttle_at` if the throttle time is not the first field of its response, to
    NO_THROTTLE_TIME if there is none. It sets `is_exempt` if the time of the request counts for no
    client.
    """

    def __init__(self) -> None:
        self.cursor = Cursor()
        self.sink = Sink()

    def context(self, node):
        """Returns what the handler would have, for its functions."""
        return RequestContext(
            self.key,
            self.version,
            self.correlation_id,
            self.client_id,
            self.connection,
            node,
            self.received_ms,
            self.received_ns,
        )


@cython.cclass
class Lane:
    """Serves the plain requests of one API. `metrics` are those of the API's requests."""

    def __init__(self, metrics) -> None:
        self.metrics = metrics

    def serve(self, request):
        """Returns one of the four outcomes.

        An exception is a bug: it closes the connection with an error line.
        """
        return 0
