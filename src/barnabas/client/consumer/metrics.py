"""Metrics of a consumer by the names of the Java consumer, and the JSON of `stats_cb`.

That has the main fields of librdkafka's statistics.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.broker_statistics import broker_statistics, traffic_totals
from barnabas.client.cluster import ClusterClient
from barnabas.client.consumer.offset_committer import OffsetCommitter
from barnabas.client.consumer.subscription_state import FetchState, TopicPartitionState
from barnabas.client.consumer.user_events import UserEvents
from barnabas.client.metrics import CounterRates, Metrics, MetricsBuilder, put_network_metrics
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import OFFSET_INVALID, PartitionKey
from barnabas.wire.apis import ApiKey

_FETCHES = "consumer-fetch-manager-metrics"
_GROUP = "consumer-coordinator-metrics"
_FETCH_STATES = {
    FetchState.INITIALIZING: "offset-query",
    FetchState.AWAIT_RESET: "offset-wait",
    FetchState.AWAIT_VALIDATION: "validate-epoch-wait",
    FetchState.FETCHING: "active",
    FetchState.STOPPED: "stopped",
}


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


class ConsumerStatistics:
    """Calls stats_cb with statistics every statistics.interval.ms."""

    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: ClusterClient,
        assignment: Mapping[PartitionKey, TopicPartitionState],
        committer: OffsetCommitter,
        events: UserEvents,
    ) -> None:
        self.rebalances = 0
        self._settings = settings
        self._cluster = cluster
        self._assignment = assignment
        self._committer = committer
        self._events = events
        self._began_s = time.time()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        if settings.stats_cb is not None and settings.statistics_interval_ms > 0:
            self._schedule(settings.stats_cb)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, callback: Callable[[str], None]) -> None:
        pause_s = self._settings.statistics_interval_ms / 1000
        self._timer = self._loop.call_later(pause_s, self._emit, callback)

    def _emit(self, callback: Callable[[str], None]) -> None:
        statistics = _statistics(
            self._settings,
            self._cluster,
            self._assignment,
            self._committer,
            self.rebalances,
            self._began_s,
        )
        self._events.call(callback, statistics)
        self._schedule(callback)


def _statistics(
    settings: ConsumerSettings,
    cluster: ClusterClient,
    assignment: Mapping[PartitionKey, TopicPartitionState],
    committer: OffsetCommitter,
    rebalances: int,
    began_s: float,
) -> str:
    now_s = time.time()
    brokers = broker_statistics(cluster)
    topics: dict[str, dict[str, Any]] = {}
    for (name, index), partition in assignment.items():
        topic = topics.setdefault(name, {"topic": name, "partitions": {}})
        topic["partitions"][str(index)] = _partition(cluster, partition, committer)
    statistics: dict[str, Any] = {
        "name": f"{settings.client_id}#consumer-1",
        "client_id": settings.client_id,
        "type": "consumer",
        "ts": round(time.monotonic() * 1e6),
        "time": int(now_s),
        "age": round((now_s - began_s) * 1e6),
        "metadata_cache_cnt": len(cluster.metadata.topics),
        **traffic_totals(brokers),
        "rxmsgs": sum(partition.received_records for partition in assignment.values()),
        "rxmsg_bytes": sum(partition.received_bytes for partition in assignment.values()),
        "brokers": brokers,
        "topics": topics,
        "cgrp": {
            "state": "up" if settings.group_id else "init",
            "rebalance_cnt": rebalances,
            "assignment_size": len(assignment),
        },
    }
    return json.dumps(statistics)


def _partition(
    cluster: ClusterClient, partition: TopicPartitionState, committer: OffsetCommitter
) -> dict[str, Any]:
    leader = cluster.metadata.leader(*partition.key)
    stored = committer.stored_offset(partition)
    committed = partition.committed_offset
    end = partition.end_offset
    return {
        "partition": partition.key[1],
        "broker": -1 if leader is None else leader.leader,
        "leader": -1 if leader is None else leader.leader,
        "fetchq_cnt": partition.queued_records,
        "fetch_state": _FETCH_STATES[partition.state],
        "next_offset": partition.fetch_offset,
        "app_offset": partition.progress.position,
        "stored_offset": OFFSET_INVALID if stored is None else stored.offset,
        "committed_offset": committed,
        "eof_offset": partition.eof_offset,
        "lo_offset": partition.log_start_offset,
        "hi_offset": partition.high_watermark,
        "ls_offset": partition.last_stable_offset,
        "consumer_lag": end - committed if committed >= 0 and end >= 0 else -1,
        "consumer_lag_stored": end - stored.offset if stored is not None and end >= 0 else -1,
        "leader_epoch": -1 if leader is None else leader.leader_epoch,
        "rxmsgs": partition.received_records,
        "rxbytes": partition.received_bytes,
    }
