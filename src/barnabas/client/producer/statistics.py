"""What a producer tells of itself, under the names of Java's: nothing is counted per record."""

import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from barnabas import __version__
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.dispatch import Dispatch, Outcome
from barnabas.client.producer.sealing import compression_rate
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.windows import Window
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import Partition
from barnabas.net.counters import Counters

Metrics = dict[str, float | str]
"""By "group:name:{tag=value,...}", as kafka-producer-perf-test prints them."""


@dataclass(slots=True)
class Delivered:
    """What has reached a partition so far."""

    records: int = 0
    bytes: int = 0


class _Topic:
    __slots__ = ("bytes", "compression", "errors", "records", "retries")

    def __init__(self) -> None:
        self.records = Window()
        self.bytes = Window()
        self.compression = Window()
        self.errors = Window()
        self.retries = Window()


class Statistics:
    """Told of every request and its end, on the loop."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._client_id = settings.client_id
        self._began_s = time.time()
        self._windows: defaultdict[str, Window] = defaultdict(Window)
        self._topics: defaultdict[str, _Topic] = defaultdict(_Topic)
        self._latencies: defaultdict[int, Window] = defaultdict(Window)
        self._request_sizes: defaultdict[int, Window] = defaultdict(Window)
        self.delivered: defaultdict[Partition, Delivered] = defaultdict(Delivered)
        self._network: dict[str, tuple[Window, float]] = {}

    def sent(self, dispatch: Dispatch, now_s: float) -> None:
        windows = self._windows
        records = 0
        for (name, _), outbound in dispatch.batches.items():
            batch, topic = outbound.batch, self._topics[name]
            count = batch.record_count
            records += count
            windows["batch-size"].record(batch.size_bytes, now_s)
            windows["record-size"].record(batch.charged_bytes / max(1, count), now_s)
            windows["record-size-max"].record(batch.largest_record, now_s)
            windows["compression-rate"].record(compression_rate(batch), now_s)
            topic.compression.record(compression_rate(batch), now_s)
            topic.bytes.record(batch.size_bytes, now_s)
            topic.records.record(count, now_s)
            if outbound.attempts > 1:
                windows["record-retry"].record(count, now_s)
                topic.retries.record(count, now_s)
            else:
                queued_ms = (now_s - batch.created_s) * 1000
                windows["record-queue-time"].record(queued_ms, now_s)
        windows["records-per-request"].record(records, now_s)
        windows["record-send"].record(records, now_s)
        self._request_sizes[dispatch.node_id].record(dispatch.size_bytes, now_s)

    def answered(self, dispatch: Dispatch, throttle_ms: int, now_s: float) -> None:
        latency_ms = (now_s - dispatch.sent_s) * 1000
        self._windows["request-latency"].record(latency_ms, now_s)
        self._latencies[dispatch.node_id].record(latency_ms, now_s)
        self._windows["produce-throttle-time"].record(throttle_ms, now_s)

    def finished(self, outcome: Outcome, now_s: float) -> None:
        if outcome.error is not None:
            count = outcome.batch.record_count
            self._windows["record-error"].record(count, now_s)
            self._topics[outcome.batch.place[0]].errors.record(count, now_s)
        else:
            delivered = self.delivered[outcome.batch.place]
            delivered.records += outcome.batch.record_count
            delivered.bytes += outcome.batch.charged_bytes

    def batch_size(self, now_s: float) -> tuple[float, float]:
        """On average, and the largest."""
        window = self._windows["batch-size"]
        return window.average(now_s), window.largest(now_s)

    def waited(self, seconds: float, now_s: float) -> None:
        """Somebody has waited for room in the buffer."""
        self._windows["bufferpool-wait"].record(seconds, now_s)

    def exhausted(self, now_s: float) -> None:
        """Somebody has found no room in the buffer."""
        self._windows["buffer-exhausted"].record(1, now_s)

    def metrics(
        self,
        accumulator: Accumulator,
        sender: Sender,
        connections: dict[str, tuple[int, Counters]],
        buffer_bytes: int,
    ) -> Metrics:
        now_s = time.monotonic()
        told: Metrics = {}
        own = f"{{client-id={self._client_id}}}"

        def put(name: str, value: float, group: str = "producer-metrics", tags: str = own) -> None:
            told[f"{group}:{name}:{tags}"] = value

        def rated(name: str, window: Window, group: str, tags: str) -> None:
            put(f"{name}-rate", window.rate(now_s), group, tags)
            put(f"{name}-total", window.total, group, tags)

        windows = self._windows
        for name in ("batch-size", "record-queue-time", "request-latency", "produce-throttle-time"):
            put(f"{name}-avg", windows[name].average(now_s))
            put(f"{name}-max", windows[name].largest(now_s))
        put("record-size-avg", windows["record-size"].average(now_s))
        put("record-size-max", windows["record-size-max"].largest(now_s))
        put("compression-rate-avg", windows["compression-rate"].average(now_s))
        put("records-per-request-avg", windows["records-per-request"].average(now_s))
        for name in ("record-send", "record-retry", "record-error", "buffer-exhausted"):
            rated(name, windows[name], "producer-metrics", own)
        put("bufferpool-wait-ratio", windows["bufferpool-wait"].rate(now_s))
        put("bufferpool-wait-time-ns-total", windows["bufferpool-wait"].total * 1e9)
        put("buffer-total-bytes", buffer_bytes)
        put("buffer-available-bytes", max(0, buffer_bytes - accumulator.held_bytes))
        put("requests-in-flight", sender.under_way)
        self._put_network(put, connections, now_s)
        for topic_name, topic in self._topics.items():
            tags = f"{{client-id={self._client_id}, topic={topic_name}}}"
            group = "producer-topic-metrics"
            put("compression-rate", topic.compression.average(now_s), group, tags)
            rated("byte", topic.bytes, group, tags)
            rated("record-send", topic.records, group, tags)
            rated("record-retry", topic.retries, group, tags)
            rated("record-error", topic.errors, group, tags)
        told[f"app-info:version:{own}"] = __version__
        told[f"app-info:start-time-ms:{own}"] = self._began_s * 1000
        told[f"kafka-metrics-count:count:{own}"] = float(len(told) + 1)
        return told

    def _put_network(
        self, put: Callable[..., None], connections: dict[str, tuple[int, Counters]], now_s: float
    ) -> None:
        totals: defaultdict[str, float] = defaultdict(float)
        for node_id, counters in connections.values():
            tags = f"{{client-id={self._client_id}, node-id=node-{node_id}}}"
            group = "producer-node-metrics"
            for name, value in _network(counters).items():
                totals[name] += value
                put(f"{name}-total", value, group, tags)
                put(f"{name}-rate", self._rate(f"{name} {node_id}", value, now_s), group, tags)
            latencies = self._latencies[node_id]
            put("request-latency-avg", latencies.average(now_s), group, tags)
            put("request-latency-max", latencies.largest(now_s), group, tags)
            sizes = self._request_sizes[node_id]
            put("request-size-avg", sizes.average(now_s), group, tags)
            put("request-size-max", sizes.largest(now_s), group, tags)
            totals["connections"] += counters.connections
            totals["connection-creation"] += counters.connects
            totals["connection-close"] += counters.disconnects
        put("connection-count", totals.pop("connections", 0.0))
        totals["network-io"] = totals["request"] + totals["response"]
        for name, value in totals.items():
            put(f"{name}-total", value)
            put(f"{name}-rate", self._rate(name, value, now_s))

    def _rate(self, name: str, total: float, now_s: float) -> float:
        """Of a total that others count: what was added since the last look is of now."""
        window, before = self._network.get(name, (Window(), 0.0))
        window.record(total - before, now_s)
        self._network[name] = window, total
        return window.rate(now_s)


def _network(counters: Counters) -> dict[str, float]:
    return {
        "outgoing-byte": counters.bytes_out,
        "incoming-byte": counters.bytes_in,
        "request": counters.requests,
        "response": counters.responses,
    }
