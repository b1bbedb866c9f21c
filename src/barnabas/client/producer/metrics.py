"""The metrics of a producer, under the names of Java's producer. Nothing is counted per record."""

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
from barnabas.client.producer._accumulator import RecordAccumulator
from barnabas.client.producer._batch import ProducerBatch
from barnabas.client.producer.batch_finisher import compression_rate
from barnabas.client.producer.produce_request import InFlightProduce
from barnabas.client.producer.sender import Sender
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import PartitionKey
from barnabas.net.connection_options import ConnectionCounters


@dataclass(slots=True)
class DeliveredTotals:
    """Records and bytes that a partition has acknowledged."""

    records: int = 0
    bytes: int = 0


class _TopicStats:
    __slots__ = ("bytes", "compression", "errors", "records", "retries")

    def __init__(self) -> None:
        self.records = SampledStat()
        self.bytes = SampledStat()
        self.compression = SampledStat()
        self.errors = SampledStat()
        self.retries = SampledStat()


class ProducerMetrics:
    """Counts on the loop, once per request and batch."""

    def __init__(self, settings: ProducerSettings) -> None:
        self._client_id = settings.client_id
        self._started_s = time.time()
        self._stats: defaultdict[str, SampledStat] = defaultdict(SampledStat)
        self._topics: defaultdict[str, _TopicStats] = defaultdict(_TopicStats)
        self._latencies: defaultdict[int, SampledStat] = defaultdict(SampledStat)
        self._request_sizes: defaultdict[int, SampledStat] = defaultdict(SampledStat)
        self.delivered: defaultdict[PartitionKey, DeliveredTotals] = defaultdict(DeliveredTotals)
        self._network_rates = CounterRates()

    def on_send(self, request: InFlightProduce, now_s: float) -> None:
        stats = self._stats
        records = 0
        for (name, _), batch in request.batches.items():
            topic = self._topics[name]
            count = batch.record_count
            records += count
            stats["batch-size"].record(batch.size_bytes, now_s)
            stats["record-size"].record(batch.buffered_bytes / max(1, count), now_s)
            stats["record-size-max"].record(batch.max_record_bytes, now_s)
            stats["compression-rate"].record(compression_rate(batch), now_s)
            topic.compression.record(compression_rate(batch), now_s)
            topic.bytes.record(batch.size_bytes, now_s)
            topic.records.record(count, now_s)
            if batch.attempts > 1:
                stats["record-retry"].record(count, now_s)
                topic.retries.record(count, now_s)
            else:
                queued_ms = (now_s - batch.created_s) * 1000
                stats["record-queue-time"].record(queued_ms, now_s)
        stats["records-per-request"].record(records, now_s)
        stats["record-send"].record(records, now_s)
        self._request_sizes[request.node_id].record(request.size_bytes, now_s)

    def on_response(self, request: InFlightProduce, throttle_ms: int, now_s: float) -> None:
        latency_ms = (now_s - request.sent_s) * 1000
        self._stats["request-latency"].record(latency_ms, now_s)
        self._latencies[request.node_id].record(latency_ms, now_s)
        self._stats["produce-throttle-time"].record(throttle_ms, now_s)

    def on_completed(self, batch: ProducerBatch, now_s: float) -> None:
        if batch.error is not None:
            self._stats["record-error"].record(batch.record_count, now_s)
            self._topics[batch.topic].errors.record(batch.record_count, now_s)
        else:
            delivered = self.delivered[batch.topic_partition]
            delivered.records += batch.record_count
            delivered.bytes += batch.buffered_bytes

    def batch_size(self, now_s: float) -> tuple[float, float]:
        """Returns the average and the maximum."""
        stat = self._stats["batch-size"]
        return stat.average(now_s), stat.max(now_s)

    def on_buffer_wait(self, seconds: float, now_s: float) -> None:
        """A caller of `produce` has waited for space in the buffer."""
        self._stats["bufferpool-wait"].record(seconds, now_s)

    def on_buffer_exhausted(self, now_s: float) -> None:
        """A caller of `produce` has got a BufferError."""
        self._stats["buffer-exhausted"].record(1, now_s)

    def collect(
        self,
        accumulator: RecordAccumulator,
        sender: Sender,
        connections: dict[str, tuple[int, ConnectionCounters]],
        buffer_bytes: int,
    ) -> Metrics:
        now_s = time.monotonic()
        builder = MetricsBuilder(self._client_id, "producer-metrics", now_s)
        stats = self._stats
        for name in ("batch-size", "record-queue-time", "request-latency", "produce-throttle-time"):
            builder.put_avg_max(name, stats[name])
        builder.put("record-size-avg", stats["record-size"].average(now_s))
        builder.put("record-size-max", stats["record-size-max"].max(now_s))
        builder.put("compression-rate-avg", stats["compression-rate"].average(now_s))
        builder.put("records-per-request-avg", stats["records-per-request"].average(now_s))
        for name in ("record-send", "record-retry", "record-error", "buffer-exhausted"):
            builder.put_rate_total(name, stats[name])
        builder.put("bufferpool-wait-ratio", stats["bufferpool-wait"].rate(now_s))
        builder.put("bufferpool-wait-time-ns-total", stats["bufferpool-wait"].total * 1e9)
        builder.put("buffer-total-bytes", buffer_bytes)
        builder.put("buffer-available-bytes", max(0, buffer_bytes - accumulator.buffered_bytes))
        builder.put("requests-in-flight", sender.requests_in_flight)
        put_network_metrics(
            builder, self._network_rates, connections, "producer-node-metrics", now_s
        )
        for node_id, _ in connections.values():
            node, group = f"node-{node_id}", "producer-node-metrics"
            builder.put_avg_max("request-latency", self._latencies[node_id], group, node_id=node)
            builder.put_avg_max("request-size", self._request_sizes[node_id], group, node_id=node)
        for name, topic in self._topics.items():
            group = "producer-topic-metrics"
            builder.put("compression-rate", topic.compression.average(now_s), group, topic=name)
            builder.put_rate_total("byte", topic.bytes, group, topic=name)
            builder.put_rate_total("record-send", topic.records, group, topic=name)
            builder.put_rate_total("record-retry", topic.retries, group, topic=name)
            builder.put_rate_total("record-error", topic.errors, group, topic=name)
        return builder.finish(self._started_s)
