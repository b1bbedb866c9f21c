"""The metrics of a node in the text format of Prometheus.

Names are those that the usual rules of the JMX exporter give to Kafka's own metrics, so that
dashboards made for Kafka work: `kafka.network:type=RequestMetrics,name=TotalTimeMs` becomes
`kafka_network_requestmetrics_totaltimems`, and a rate (`...PerSec`) the counter behind it.
"""

import asyncio
from collections.abc import Callable, Iterator
from itertools import groupby

from prometheus_client import ProcessCollector, generate_latest
from prometheus_client.core import Metric

from barnabas.server.metrics.registry import (
    Gauge,
    Histogram,
    MetricsRegistry,
    RequestMetrics,
    TopicMetrics,
)
from barnabas.wire.errors import ErrorCode

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_WINDOW_S = 60.0
_QUANTILES = ("0.50", "0.75", "0.95", "0.98", "0.99", "0.999")
_NS_PER_MS = 1_000_000
_TOTAL = "_total"
_SAMPLES_OF_PART = 200

_REQUEST_HISTOGRAMS = (
    ("requestbytes", "request_bytes", 1),
    ("requestqueuetimems", "queue_ns", _NS_PER_MS),
    ("localtimems", "local_ns", _NS_PER_MS),
    ("remotetimems", "remote_ns", _NS_PER_MS),
    ("responsequeuetimems", "response_queue_ns", _NS_PER_MS),
    ("responsesendtimems", "response_send_ns", _NS_PER_MS),
    ("totaltimems", "total_ns", _NS_PER_MS),
)
"""Kafka's name, the attribute, and the divisor of its values."""

_TOPIC_COUNTERS = (
    ("messagesin", "messages_in"),
    ("bytesin", "bytes_in"),
    ("bytesout", "bytes_out"),
    ("bytesrejected", "bytes_rejected"),
    ("totalproducerequests", "produce_requests"),
    ("totalfetchrequests", "fetch_requests"),
    ("failedproducerequests", "failed_produce_requests"),
    ("failedfetchrequests", "failed_fetch_requests"),
)


class Exposition:
    """The text of all metrics. Quantiles are of the last one or two minutes."""

    def __init__(self, metrics: MetricsRegistry, now_s: Callable[[], float]) -> None:
        self._metrics = metrics
        self._now_s = now_s
        self._windows: dict[Histogram, _Window] = {}
        self._process = ProcessCollector(registry=None)

    async def text(self) -> bytes:
        """Returns all metrics; requests are served in between."""
        chunks = []
        for family in self._families():
            for chunk in _texts(family):
                chunks.append(chunk)
                await asyncio.sleep(0)
        return b"".join(chunks)

    def _families(self) -> Iterator[Metric]:
        yield from self._request_counters()
        for name, attribute, divisor in _REQUEST_HISTOGRAMS:
            yield self._request_histogram(name, attribute, divisor)
        yield from self._topic_counters()
        for name, alike in groupby(sorted(self._metrics.gauges(), key=_name_of), _name_of):
            kind = "counter" if name.endswith(_TOTAL) else "gauge"
            family = Metric(name.removesuffix(_TOTAL), "", kind)
            for gauge in alike:
                family.add_sample(name, gauge.labels, gauge.value)
            yield family
        yield from self._process.collect()

    def _requests(self) -> Iterator[tuple[str, RequestMetrics]]:
        for api, metrics in self._metrics.requests.items():
            yield api, metrics
            if api == "Fetch":  # Kafka counts fetches of consumers separately, too
                yield "FetchConsumer", metrics

    def _request_counters(self) -> Iterator[Metric]:
        requests = Metric("kafka_network_requestmetrics_requests", "", "counter")
        errors = Metric("kafka_network_requestmetrics_errors", "", "counter")
        for api, metrics in self._requests():
            for version, count in metrics.requests.items():
                labels = {"request": api, "version": str(version)}
                requests.add_sample(requests.name + "_total", labels, count)
            for code, count in metrics.errors.items():
                labels = {"request": api, "error": ErrorCode.of(code).name}
                errors.add_sample(errors.name + "_total", labels, count)
        yield requests
        yield errors

    def _request_histogram(self, name: str, attribute: str, divisor: int) -> Metric:
        family = Metric(f"kafka_network_requestmetrics_{name}", "", "summary")
        for api, metrics in self._requests():
            histogram: Histogram = getattr(metrics, attribute)
            recent, count = self._recent(histogram), histogram.count
            if histogram in (metrics.remote_ns, metrics.response_queue_ns):
                # Only requests that waited were counted; the others waited 0 ms.
                recent[0] += sum(self._recent(metrics.local_ns)) - sum(recent)
                count = metrics.local_ns.count
            for quantile in _QUANTILES:
                labels = {"request": api, "quantile": quantile}
                value = quantile_of(recent, float(quantile)) / divisor
                family.add_sample(family.name, labels, value)
            family.add_sample(family.name + "_count", {"request": api}, count)
            family.add_sample(family.name + "_sum", {"request": api}, histogram.total / divisor)
        return family

    def _recent(self, histogram: Histogram) -> list[int]:
        window = self._windows.get(histogram)
        if window is None:
            window = self._windows[histogram] = _Window(histogram, self._now_s())
        return window.recent(self._now_s())

    def _topic_counters(self) -> Iterator[Metric]:
        metrics = self._metrics
        by_labels: list[tuple[dict[str, str], TopicMetrics]] = [({}, metrics.all_topics())]
        by_labels += [({"topic": topic}, counts) for topic, counts in metrics.topics().items()]
        for name, attribute in _TOPIC_COUNTERS:
            family = Metric(f"kafka_server_brokertopicmetrics_{name}", "", "counter")
            for labels, counts in by_labels:
                family.add_sample(family.name + "_total", labels, getattr(counts, attribute))
            yield family


def _texts(family: Metric) -> Iterator[bytes]:
    """Yields the text of a family in parts, which take less than a millisecond each."""
    samples = family.samples
    for begin in range(0, max(len(samples), 1), _SAMPLES_OF_PART):
        family.samples = samples[begin : begin + _SAMPLES_OF_PART]
        text = generate_latest(_SingleFamily(family))
        # The first two lines say what the family is, once.
        yield text if not begin else text.split(b"\n", 2)[2]


class _SingleFamily:
    """A registry with one metric family."""

    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


class _Window:
    """The counts of a histogram in the last one or two minutes."""

    __slots__ = ("_histogram", "_newer", "_older", "_rolled_s")

    def __init__(self, histogram: Histogram, now_s: float) -> None:
        self._histogram = histogram
        self._older = [0] * len(histogram.buckets)
        self._newer = self._older
        self._rolled_s = now_s

    def recent(self, now_s: float) -> list[int]:
        if now_s - self._rolled_s >= _WINDOW_S:
            self._older, self._newer = self._newer, list(self._histogram.buckets)
            self._rolled_s = now_s
        return [
            count - old for count, old in zip(self._histogram.buckets, self._older, strict=True)
        ]


def quantile_of(buckets: list[int], fraction: float) -> float:
    """Returns the value below which `fraction` of the values are, by interpolation in a bucket."""
    rank = fraction * sum(buckets)
    for exponent, count in enumerate(buckets):
        if count and rank <= count:
            lowest = 1 << (exponent - 1) if exponent else 0
            return lowest + lowest * rank / count
        rank -= count
    return 0.0


def _name_of(gauge: Gauge) -> str:
    return gauge.name
