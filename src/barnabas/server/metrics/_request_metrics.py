# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The metrics of requests, which are counted on the hot path."""

from __future__ import annotations

from collections import defaultdict

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

BUCKETS = 64


@cython.final
@cython.cclass
class Histogram:
    """Whole numbers counted by their power of two: bucket n holds 2^(n-1) up to 2^n - 1."""

    def __init__(self):
        self.total = 0
        if not cython.compiled:
            self.counts = [0] * BUCKETS

    @property
    def buckets(self):
        """The counts by bucket, at this moment."""
        return [self.counts[bucket] for bucket in range(BUCKETS)]

    @property
    def count(self):
        return sum(self.buckets)

    def observe(self, value, times=1):
        if cython.compiled:
            self.counts[bit_length(value) if value > 0 else 0] += times  # noqa: F821
        else:
            self.counts[value.bit_length()] += times
        self.total += value * times


@cython.final
@cython.cclass
class RequestMetrics:
    """kafka.network:type=RequestMetrics of one request type; times in nanoseconds.

    `requests` are counted by version, `errors` by code. `queue_ns` is the time from arrival to the
    start of the handler (RequestQueueTimeMs). `remote_ns` is the time of suspended requests: that
    of the replicas, of the controller or of a timeout. During `response_queue_ns` a response is
    complete, but behind those to earlier requests.
    """

    def __init__(self):
        self.requests = {}
        self.errors = defaultdict(int)
        self.request_bytes = Histogram()
        self.queue_ns = Histogram()
        self.local_ns = Histogram()
        self.remote_ns = Histogram()
        self.response_queue_ns = Histogram()
        self.response_send_ns = Histogram()
        self.total_ns = Histogram()

    def count(self, version, size_bytes, queue_ns):
        """Counts a request that is handled now."""
        self.requests[version] += 1
        self.request_bytes.observe(size_bytes)
        self.queue_ns.observe(queue_ns)
