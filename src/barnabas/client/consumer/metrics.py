"""Metrics of a consumer, by the names of the Java consumer."""

import time
from collections.abc import Mapping

from barnabas.client.cluster import ClusterClient
from barnabas.client.consumer.subscription_state import TopicPartitionState
from barnabas.client.metrics import CounterRates, Metrics, MetricsBuilder, put_network_metrics
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import PartitionKey
from barnabas.wire.apis import ApiKey

_FETCHES = "consumer-fetch-manager-metrics"
_GROUP = "consumer-coordinator-metrics"


class ConsumerMetrics:
    """Computes metrics on demand, from counters that the consumer keeps anyway."""

    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: ClusterClient,
        assignment: Mapping[PartitionKey, TopicPartitionState],
    ) -> None:
        self._client_id = settings.client_id
        self._cluster = cluster
        self._assignment = assignment
        self._totals = CounterRates()
        self._began_s = time.time()
        self._unassigned: dict[str, tuple[int, int]] = {}

    def on_unassigned(self, partition: TopicPartitionState) -> None:
        """Keeps the totals of a partition that is no longer assigned."""
        records, size_bytes = self._unassigned.get(partition.key[0], (0, 0))
        self._unassigned[partition.key[0]] = (
            records + partition.received_records,
            size_bytes + partition.received_bytes,
        )

    def metrics(self, rebalances: int) -> Metrics:
        now_s = time.monotonic()
        builder = MetricsBuilder(self._client_id, "consumer-metrics", now_s)
        counters = self._cluster.counters
        put_network_metrics(builder, self._totals, counters, "consumer-node-metrics", now_s)
        fetches = sum(each.requests_by_api.get(ApiKey.FETCH, 0) for _, each in counters.values())
        builder.put_rate_total("fetch", self._totals.stat("fetch", fetches, now_s), _FETCHES)
        self._put_consumed(builder, now_s, fetches)
        self._put_lags(builder)
        builder.put("assigned-partitions", len(self._assignment), _GROUP)
        builder.put_rate_total(
            "rebalance", self._totals.stat("rebalance", rebalances, now_s), _GROUP
        )
        return builder.finish(self._began_s)

    def _put_consumed(self, builder: MetricsBuilder, now_s: float, fetches: int) -> None:
        consumed = dict(self._unassigned)
        for (topic, _), partition in self._assignment.items():
            records, size_bytes = consumed.get(topic, (0, 0))
            consumed[topic] = (
                records + partition.received_records,
                size_bytes + partition.received_bytes,
            )
        totals = [0, 0]
        for topic, consumed_totals in consumed.items():
            for position, name in enumerate(("records-consumed", "bytes-consumed")):
                window = self._totals.stat(f"{name} {topic}", consumed_totals[position], now_s)
                builder.put_rate_total(name, window, _FETCHES, topic=topic)
                totals[position] += consumed_totals[position]
        for name, total in zip(("records-consumed", "bytes-consumed"), totals, strict=True):
            builder.put_rate_total(name, self._totals.stat(name, total, now_s), _FETCHES)
        if fetches:
            builder.put("records-per-request-avg", totals[0] / fetches, _FETCHES)
            builder.put("fetch-size-avg", totals[1] / fetches, _FETCHES)

    def _put_lags(self, builder: MetricsBuilder) -> None:
        lags: list[int] = []
        leads: list[int] = []
        for (topic, index), partition in self._assignment.items():
            end_offset, position = partition.end_offset, partition.progress.position
            if end_offset < 0 or position < 0:
                continue
            lags.append(max(0, end_offset - position))
            builder.put("records-lag", lags[-1], _FETCHES, partition=index, topic=topic)
            if partition.log_start_offset >= 0:
                leads.append(position - partition.log_start_offset)
                builder.put("records-lead", leads[-1], _FETCHES, partition=index, topic=topic)
        builder.put("records-lag-max", max(lags, default=0), _FETCHES)
        builder.put("records-lead-min", min(leads, default=0), _FETCHES)
