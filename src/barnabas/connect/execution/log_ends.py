"""The ends of the logs that sinks read: one look-up per cycle for all sinks of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.client.admin.aio import AioAdminClient
from barnabas.client.admin.metadata import ClusterMetadata
from barnabas.client.admin.model import IsolationLevel
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.values import TopicPartition
from barnabas.connect.connector import TopicPartition as PartitionKey

log = logging.getLogger("barnabas.connect")

CYCLE_S = 0.25
ERROR_PAUSE_S = 1.0
TOPICS_INTERVAL_S = 10.0
MISSING_TOPICS_INTERVAL_S = 2.0
_REQUEST_TIMEOUT_S = 30.0


@dataclass(slots=True, frozen=True)
class SinkTopics:
    """Named topics, or those whose whole names match a pattern."""

    names: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None


class LogEndsSubscriber(Protocol):
    @property
    def topics(self) -> SinkTopics: ...

    def on_partitions(self, partitions: Sequence[PartitionKey]) -> None:
        """The topics have these partitions now."""

    def on_log_ends(self, ends: Mapping[PartitionKey, int]) -> None:
        """The current ends of logs, also of partitions of other sinks."""


class LogEnds:
    """One watcher for each cluster and isolation level. Lives on the event loop."""

    def __init__(self, cycle_s: float = CYCLE_S) -> None:
        self._cycle_s = cycle_s
        self._watchers: dict[tuple[frozenset[tuple[str, str]], bool], ClusterLogEnds] = {}

    def watcher(self, admin: Mapping[str, str], *, is_read_committed: bool) -> ClusterLogEnds:
        key = frozenset(admin.items()), is_read_committed
        if key not in self._watchers:
            self._watchers[key] = ClusterLogEnds(admin, is_read_committed, self._cycle_s)
        return self._watchers[key]

    async def close(self) -> None:
        for watcher in self._watchers.values():
            await watcher.close()
        self._watchers.clear()


class ClusterLogEnds:
    """The watcher of a cluster. It has no connections while nobody has subscribed."""

    def __init__(self, admin: Mapping[str, str], is_read_committed: bool, cycle_s: float) -> None:
        self._conf = dict(admin)
        self._isolation = IsolationLevel(int(is_read_committed))
        self._cycle_s = cycle_s
        self._subscribers: list[LogEndsSubscriber] = []
        self._partitions: dict[LogEndsSubscriber, tuple[PartitionKey, ...]] = {}
        self._request: dict[TopicPartition, OffsetSpec] = {}
        self._topics_due_s = 0.0
        self._has_logged = False
        self._admin: AioAdminClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    def subscribe(self, subscriber: LogEndsSubscriber) -> None:
        self._subscribers.append(subscriber)
        self._topics_due_s = 0.0
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="log ends")

    def unsubscribe(self, subscriber: LogEndsSubscriber) -> None:
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)
            self._partitions.pop(subscriber, None)
            self._update_request()

    async def offsets(
        self, partitions: Sequence[PartitionKey], spec: OffsetSpec
    ) -> dict[PartitionKey, int]:
        """Looks up offsets. Raises KafkaException if one is not found."""
        if not partitions:
            return {}
        request = {TopicPartition(*key): spec for key in partitions}
        found = await self._client().list_offsets(
            request, isolation_level=self._isolation, request_timeout=_REQUEST_TIMEOUT_S
        )
        return {(key.topic, key.partition): value.offset for key, value in found.all().items()}

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._admin is not None:
            await self._admin.close()

    async def _run(self) -> None:
        while True:
            pause_s = self._cycle_s
            try:
                await self._cycle()
                self._has_logged = False
            except Exception as error:
                pause_s = max(pause_s, ERROR_PAUSE_S)
                self._topics_due_s = 0.0
                if not self._has_logged:
                    log.warning("cannot look up the ends of logs: %s", error)
                self._has_logged = True
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):  # wait_for may lose a cancellation
                    await self._changed.wait()

    async def _cycle(self) -> None:
        if not self._subscribers:
            return
        if time.monotonic() >= self._topics_due_s:
            await self._update_topics()
        if not self._request:
            return
        found = await self._client().list_offsets(
            self._request, isolation_level=self._isolation, request_timeout=_REQUEST_TIMEOUT_S
        )
        ends = {
            (key.topic, key.partition): found[key].offset
            for key in self._request
            if key in found and key not in found.errors
        }
        if found.errors:
            self._topics_due_s = 0.0
        for subscriber in list(self._subscribers):
            subscriber.on_log_ends(ends)

    async def _update_topics(self) -> None:
        cluster = await self._client().list_topics(timeout=_REQUEST_TIMEOUT_S)
        is_missing = False
        for subscriber in list(self._subscribers):
            names = _selected(cluster, subscriber.topics)
            is_missing |= not set(subscriber.topics.names) <= set(names)
            partitions = tuple(
                (name, index) for name in names for index in sorted(cluster.topics[name].partitions)
            )
            if self._partitions.get(subscriber) != partitions:
                self._partitions[subscriber] = partitions
                subscriber.on_partitions(partitions)
        self._update_request()
        interval_s = MISSING_TOPICS_INTERVAL_S if is_missing else TOPICS_INTERVAL_S
        self._topics_due_s = time.monotonic() + interval_s

    def _update_request(self) -> None:
        keys = {key for partitions in self._partitions.values() for key in partitions}
        self._request = {TopicPartition(*key): OffsetSpec.latest() for key in sorted(keys)}

    def _client(self) -> AioAdminClient:
        if self._admin is None:
            self._admin = AioAdminClient(self._conf)
        return self._admin


def _selected(cluster: ClusterMetadata, topics: SinkTopics) -> list[str]:
    pattern = topics.pattern
    if pattern is None:
        return [
            name
            for name in topics.names
            if name in cluster.topics and cluster.topics[name].error is None
        ]
    return sorted(
        name
        for name, topic in cluster.topics.items()
        if not topic.is_internal and topic.error is None and pattern.fullmatch(name)
    )
