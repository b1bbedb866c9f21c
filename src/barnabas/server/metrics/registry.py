"""The metrics of a node, by Kafka's names.

Counting happens on the hot path, so a counter is an attribute and a histogram an array of buckets;
`exposition` turns them into Prometheus text when they are scraped.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from barnabas.server.metrics._request_metrics import BUCKETS, Histogram, RequestMetrics

__all__ = ["BUCKETS", "Gauge", "Histogram", "MetricsRegistry", "RequestMetrics", "TopicMetrics"]


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
