"""What the broker counts about itself, under Kafka's names.

Counting happens on the hot path, so a counter is an attribute and a histogram a list of
buckets; turning them into Prometheus text is `exposition`'s work, at the moment of a scrape.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

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

    def quantile(self, fraction: float) -> float:
        """The value below which that fraction lies, within the width of a bucket."""
        rank = fraction * self.count
        for exponent, count in enumerate(self.buckets):
            if count and rank <= count:
                lowest = 1 << (exponent - 1) if exponent else 0
                return lowest + lowest * rank / count
            rank -= count
        return 0.0


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
        """Received but not begun (RequestQueueTimeMs)."""
        self.local_ns = Histogram()
        self.remote_ns = Histogram()
        """Parked: the replicas', the controller's or the clock's time."""
        self.response_queue_ns = Histogram()
        """Answered, behind the answers of earlier requests."""
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


@dataclass(frozen=True, slots=True)
class Gauge:
    """A value looked up when it is asked for, such as a purgatory's size."""

    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)


class Metrics:
    """Every counter of a broker. `register` adds values that only a scrape needs to know."""

    __slots__ = ("_gauges", "_requests", "_topics")

    def __init__(self) -> None:
        self._requests: dict[str, RequestMetrics] = {}
        self._topics: dict[str, TopicMetrics] = {}
        self._gauges: list[Iterable[Gauge]] = []

    def request(self, api: str) -> RequestMetrics:
        """The metrics of a request type by its name; keep the object, not the name."""
        metrics = self._requests.get(api)
        if metrics is None:
            metrics = self._requests[api] = RequestMetrics()
        return metrics

    def topic(self, name: str) -> TopicMetrics:
        metrics = self._topics.get(name)
        if metrics is None:
            metrics = self._topics[name] = TopicMetrics()
        return metrics

    def forget_topic(self, name: str) -> None:
        self._topics.pop(name, None)

    def register(self, gauges: Iterable[Gauge]) -> None:
        """Something to iterate over at each scrape: give an object, not an iterator."""
        self._gauges.append(gauges)

    def requests(self) -> Iterator[tuple[str, RequestMetrics]]:
        yield from self._requests.items()

    def topics(self) -> Iterator[tuple[str, TopicMetrics]]:
        yield from self._topics.items()

    def gauges(self) -> Iterator[Gauge]:
        for gauges in self._gauges:
            yield from gauges
