"""What a producer tells of itself, under the names of Java's: nothing is counted per record."""

import time
from collections import defaultdict
from dataclasses import dataclass

from barnabas.client.metrics import (
    CounterRates,
    Metrics,
    MetricsBuilder,
    SampledStat,
    put_network_metrics,
)
from barnabas.client.producer._accumulator import Accumulator
from barnabas.client.producer.dispatch import Dispatch, Outcome
from barnabas.client.producer.sealing import compression_rate
from barnabas.client.producer.sender import Sender
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import TopicPartitionTuple
from barnabas.net.counters import ConnectionCounters


@dataclass(slots=True)
class Delivered:
    """What has reached a partition so far."""

    records: int = 0
    bytes: int = 0


class _Topic:
    __slots__ = ("bytes", "compression", "errors", "records", "retries")

    def __init__(self) -> None:
        self.records = SampledStat()
        self.bytes = SampledStat()
        self.compression = SampledStat()
        self.errors = SampledStat()
        self.retries = SampledStat()


class Statistics:
    """Told of every request and its end, on the loop."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._client_id = settings.client_id
        self._began_s = time.time()
        self._windows: defaultdict[str, SampledStat] = defaultdict(SampledStat)
        self._topics: defaultdict[str, _Topic] = defaultdict(_Topic)
        self._latencies: defaultdict[int, SampledStat] = defaultdict(SampledStat)
        self._request_sizes: defaultdict[int, SampledStat] = defaultdict(SampledStat)
        self.delivered: defaultdict[TopicPartitionTuple, Delivered] = defaultdict(Delivered)
        self._network = CounterRates()

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
        return window.average(now_s), window.max(now_s)

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
        connections: dict[str, tuple[int, ConnectionCounters]],
        buffer_bytes: int,
    ) -> Metrics:
        now_s = time.monotonic()
        sheet = MetricsBuilder(self._client_id, "producer-metrics", now_s)
        windows = self._windows
        for name in ("batch-size", "record-queue-time", "request-latency", "produce-throttle-time"):
            sheet.put_avg_max(name, windows[name])
        sheet.put("record-size-avg", windows["record-size"].average(now_s))
        sheet.put("record-size-max", windows["record-size-max"].max(now_s))
        sheet.put("compression-rate-avg", windows["compression-rate"].average(now_s))
        sheet.put("records-per-request-avg", windows["records-per-request"].average(now_s))
        for name in ("record-send", "record-retry", "record-error", "buffer-exhausted"):
            sheet.put_rate_total(name, windows[name])
        sheet.put("bufferpool-wait-ratio", windows["bufferpool-wait"].rate(now_s))
        sheet.put("bufferpool-wait-time-ns-total", windows["bufferpool-wait"].total * 1e9)
        sheet.put("buffer-total-bytes", buffer_bytes)
        sheet.put("buffer-available-bytes", max(0, buffer_bytes - accumulator.held_bytes))
        sheet.put("requests-in-flight", sender.under_way)
        put_network_metrics(sheet, self._network, connections, "producer-node-metrics", now_s)
        for node_id, _ in connections.values():
            node, group = f"node-{node_id}", "producer-node-metrics"
            sheet.put_avg_max("request-latency", self._latencies[node_id], group, node_id=node)
            sheet.put_avg_max("request-size", self._request_sizes[node_id], group, node_id=node)
        for name, topic in self._topics.items():
            group = "producer-topic-metrics"
            sheet.put("compression-rate", topic.compression.average(now_s), group, topic=name)
            sheet.put_rate_total("byte", topic.bytes, group, topic=name)
            sheet.put_rate_total("record-send", topic.records, group, topic=name)
            sheet.put_rate_total("record-retry", topic.retries, group, topic=name)
            sheet.put_rate_total("record-error", topic.errors, group, topic=name)
        return sheet.finish(self._began_s)
