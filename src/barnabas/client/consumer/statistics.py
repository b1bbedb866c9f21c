"""The JSON that stats_cb is given, in librdkafka's shape: its main fields."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.client.broker_statistics import broker_statistics, traffic_totals
from barnabas.client.cluster import Cluster
from barnabas.client.consumer.offset_committer import OffsetCommitter
from barnabas.client.consumer.subscription_state import FetchState, TopicPartitionState
from barnabas.client.consumer.user_events import UserEvents
from barnabas.client.settings import ConsumerSettings
from barnabas.client.values import OFFSET_INVALID, TopicPartitionTuple

_FETCH_STATES = {
    FetchState.INITIALIZING: "offset-query",
    FetchState.AWAIT_RESET: "offset-wait",
    FetchState.AWAIT_VALIDATION: "validate-epoch-wait",
    FetchState.FETCHING: "active",
    FetchState.STOPPED: "stopped",
}


class ConsumerStatistics:
    """Calls stats_cb every statistics.interval.ms."""

    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
        commits: OffsetCommitter,
        news: UserEvents,
    ) -> None:
        self.rebalances = 0
        self._settings = settings
        self._cluster = cluster
        self._assignment = assignment
        self._commits = commits
        self._news = news
        self._began_s = time.time()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        if settings.stats_cb is not None and settings.statistics_interval_ms > 0:
            self._tell_later(settings.stats_cb)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tell_later(self, callback: Callable[[str], None]) -> None:
        pause_s = self._settings.statistics_interval_ms / 1000
        self._timer = self._loop.call_later(pause_s, self._tell, callback)

    def _tell(self, callback: Callable[[str], None]) -> None:
        told = _statistics(
            self._settings,
            self._cluster,
            self._assignment,
            self._commits,
            self.rebalances,
            self._began_s,
        )
        self._news.call(callback, told)
        self._tell_later(callback)


def _statistics(
    settings: ConsumerSettings,
    cluster: Cluster,
    assignment: Mapping[TopicPartitionTuple, TopicPartitionState],
    commits: OffsetCommitter,
    rebalances: int,
    began_s: float,
) -> str:
    now_s = time.time()
    brokers = broker_statistics(cluster)
    topics: dict[str, dict[str, Any]] = {}
    for (name, index), each in assignment.items():
        topic = topics.setdefault(name, {"topic": name, "partitions": {}})
        topic["partitions"][str(index)] = _partition(cluster, each, commits)
    told: dict[str, Any] = {
        "name": f"{settings.client_id}#consumer-1",
        "client_id": settings.client_id,
        "type": "consumer",
        "ts": round(time.monotonic() * 1e6),
        "time": int(now_s),
        "age": round((now_s - began_s) * 1e6),
        "metadata_cache_cnt": len(cluster.metadata.topics),
        **traffic_totals(brokers),
        "rxmsgs": sum(each.received_records for each in assignment.values()),
        "rxmsg_bytes": sum(each.received_bytes for each in assignment.values()),
        "brokers": brokers,
        "topics": topics,
        "cgrp": {
            "state": "up" if settings.group_id else "init",
            "rebalance_cnt": rebalances,
            "assignment_size": len(assignment),
        },
    }
    return json.dumps(told)


def _partition(
    cluster: Cluster, each: TopicPartitionState, commits: OffsetCommitter
) -> dict[str, Any]:
    leader = cluster.metadata.leader(*each.key)
    stored = commits.stored_offset(each)
    committed = each.committed_offset
    end = each.last_stable_offset if each.last_stable_offset >= 0 else each.high_watermark
    return {
        "partition": each.key[1],
        "broker": -1 if leader is None else leader.leader,
        "leader": -1 if leader is None else leader.leader,
        "fetchq_cnt": each.queued_records,
        "fetch_state": _FETCH_STATES[each.state],
        "next_offset": each.fetch_offset,
        "app_offset": each.progress.position,
        "stored_offset": OFFSET_INVALID if stored is None else stored.offset,
        "committed_offset": committed,
        "eof_offset": each.eof_offset,
        "lo_offset": each.log_start_offset,
        "hi_offset": each.high_watermark,
        "ls_offset": each.last_stable_offset,
        "consumer_lag": end - committed if committed >= 0 and end >= 0 else -1,
        "consumer_lag_stored": end - stored.offset if stored is not None and end >= 0 else -1,
        "leader_epoch": -1 if leader is None else leader.leader_epoch,
        "rxmsgs": each.received_records,
        "rxbytes": each.received_bytes,
    }
