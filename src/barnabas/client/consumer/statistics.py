"""The JSON of stats_cb: the main fields of librdkafka's statistics."""

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
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import OFFSET_INVALID, PartitionKey

_FETCH_STATES = {
    FetchState.INITIALIZING: "offset-query",
    FetchState.AWAIT_RESET: "offset-wait",
    FetchState.AWAIT_VALIDATION: "validate-epoch-wait",
    FetchState.FETCHING: "active",
    FetchState.STOPPED: "stopped",
}


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
