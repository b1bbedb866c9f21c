"""The metrics of a node, by Kafka's names.

Counting happens on the hot path, so a counter is an attribute and a histogram a list of buckets;
`exposition` turns them into Prometheus text when they are scraped.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

BUCKETS = 64


class Histogram:
    """Whole numbers counted by their power of two: bucket n holds 2^(n-1) up to 2^n - 1."""

    __slots__ = ("buckets", "total")

    def __init__(self) -> None:
        self.buckets = [0] * BUCKETS
        self.total = 0

    @property
    def count(self) -> int:
        return sum(self.buckets)

    def observe(self, value: int, times: int = 1) -> None:
        self.buckets[value.bit_length()] += times
        self.total += value * times


class RequestMetrics:
    """kafka.network:type=RequestMetrics of one request type; times in nanoseconds."""

    __slots__ = (
        "errors",
        "local_ns",
        "queue_ns",
        "remote_ns",
        "request_bytes",
        "requests",
        "response_queue_ns",
        "response_send_ns",
        "total_ns",
    )

    def __init__(self) -> None:
        self.requests: dict[int, int] = {}  # by version
        self.errors: defaultdict[int, int] = defaultdict(int)  # by code
        self.request_bytes = Histogram()
        self.queue_ns = Histogram()
        """From arrival to the start of the handler (RequestQueueTimeMs)."""
        self.local_ns = Histogram()
        self.remote_ns = Histogram()
        """Suspended: the time of the replicas, of the controller or of a timeout."""
        self.response_queue_ns = Histogram()
        """Complete, but behind the responses to earlier requests."""
        self.response_send_ns = Histogram()
        self.total_ns = Histogram()


class TopicMetrics:
    """kafka.server:type=BrokerTopicMetrics of one topic, or of all of them."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "bytes_rejected",
        "failed_fetch_requests",
        "failed_produce_requests",
        "fetch_requests",
        "messages_in",
        "produce_requests",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.bytes_rejected = 0
        self.produce_requests = 0
        self.fetch_requests = 0
        self.failed_produce_requests = 0
        self.failed_fetch_requests = 0

    def add(self, other: "TopicMetrics") -> None:
        for name in TopicMetrics.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value that is read when the metrics are scraped.

    If its name ends with `_total` it is a counter, which only increases.
    """

    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


class MetricsRegistry:
    """All counters and gauges of a node."""

    __slots__ = ("_deleted_topics", "_gauges", "_topics", "requests")

    def __init__(self) -> None:
        self.requests: dict[str, RequestMetrics] = {}  # by the API's name
        self._topics: dict[str, TopicMetrics] = {}
        self._deleted_topics = TopicMetrics()  # the sum over deleted topics
        self._gauges: list[Iterable[Gauge]] = []

    def request(self, api: str) -> RequestMetrics:
        """Returns the metrics of an API; callers keep the object."""
        metrics = self.requests.get(api)
        if metrics is None:
            metrics = self.requests[api] = RequestMetrics()
        return metrics

    def topic(self, name: str) -> TopicMetrics:
        metrics = self._topics.get(name)
        if metrics is None:
            metrics = self._topics[name] = TopicMetrics()
        return metrics

    def remove_topic(self, name: str) -> None:
        """Called when a topic is deleted; the sum over all topics must not decrease."""
        metrics = self._topics.pop(name, None)
        if metrics is not None:
            self._deleted_topics.add(metrics)

    def topics(self) -> dict[str, TopicMetrics]:
        return self._topics

    def all_topics(self) -> TopicMetrics:
        """Returns the sum over all topics, including deleted ones."""
        total = TopicMetrics()
        for metrics in (self._deleted_topics, *self._topics.values()):
            total.add(metrics)
        return total

    def register(self, gauges: Iterable[Gauge]) -> None:
        """Adds gauges, which are iterated over at every scrape."""
        self._gauges.append(gauges)

    def gauges(self) -> Iterator[Gauge]:
        return chain.from_iterable(self._gauges)
