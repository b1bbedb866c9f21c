"""A sink in the driver: follows its topics, plans items, commits offsets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

from barnabas.client.admin.offsets import OffsetSpec
from barnabas.connect.connector import SinkConnector
from barnabas.connect.connector import TopicPartition as PartitionKey
from barnabas.connect.errors import ConnectError, InvalidConfigError
from barnabas.connect.execution.committer import SinkCommitter
from barnabas.connect.execution.dead_letters import ensure_dead_letter_topic
from barnabas.connect.execution.log_ends import SinkTopics
from barnabas.connect.execution.pipeline import pipeline_for
from barnabas.connect.execution.planner import SinkPlanner
from barnabas.connect.execution.settings import (
    SERVERS,
    client_settings,
    error_settings,
    listed,
    pipeline_settings,
    require_one_cluster,
    task_settings,
)
from barnabas.connect.execution.sink_item import SinkItem, SinkTaskSettings
from barnabas.connect.execution.work import RunContext
from barnabas.connect.transforms.java_regex import compile_java
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.source.options import FETCH_DEFAULTS

log = logging.getLogger("barnabas.connect")

TRUNCATION_GRACE_S = 10.0
"""How long a log may end before the position: a new leader may not know its high watermark yet."""

_NOT_FOR_TASKS = (
    "auto.offset.reset",
    "client.id",
    "enable.auto.commit",
    "group.id",
    "key.deserializer",
    "value.deserializer",
)


def sink_group(name: str, config: Mapping[str, str]) -> str:
    """Returns the consumer group that has the offsets of a sink."""
    return config.get("consumer.override.group.id") or f"connect-{name}"


def sink_transactional_id(group_id: str, name: str) -> str:
    return f"connect-{group_id}-sink-{name}"


class SinkWork:
    """Implements `ConnectorWork`."""

    def __init__(self, context: RunContext) -> None:
        worker, config = context.services.worker, context.config
        self._context = context
        self.topics = sink_topics(config)
        tasks = task_settings(config, worker.originals)
        self._tasks = tasks.tasks_max
        producer = client_settings("producer", config, worker.client("producer"))
        admin = client_settings("admin", config, worker.client("admin"))
        consumer = client_settings("consumer", config, worker.client("consumer"))
        require_one_cluster(
            {
                "consumer": consumer.get(SERVERS),
                "producer": producer.get(SERVERS),
                "admin": admin.get(SERVERS),
            },
            "the offsets of its group are committed in transactions",
        )
        self._reset = consumer.get("auto.offset.reset", "earliest").strip().lower()
        self._settings = SinkTaskSettings(
            connector=context.connector,  # type: ignore[arg-type]
            config=config,
            pipeline=pipeline_settings(config, worker.originals),
            errors=error_settings(config),
            consumer={
                **FETCH_DEFAULTS,
                **{name: text for name, text in consumer.items() if name not in _NOT_FOR_TASKS},
            },
            producer=producer,
            fails_on_data_loss=self._reset == "none",
        )
        self._admin = admin
        self._connector: SinkConnector = context.connector()  # type: ignore[assignment]
        self._committer = SinkCommitter(
            self._connector,
            sink_group(context.name, config),
            sink_transactional_id(worker.group_id, context.name),
            producer,
            admin,
        )
        self._planner = SinkPlanner(self._connector, self._tasks, tasks.max_rows)
        self._watcher = context.services.log_ends.watcher(
            admin, is_read_committed=consumer.get("isolation.level") == "read_committed"
        )
        self._in_flight = False
        self._wanted: tuple[PartitionKey, ...] | None = None
        """The partitions of the topics, until the planner has them."""
        self._changed = asyncio.Event()
        self._truncated_since_s: dict[PartitionKey, float] = {}

    async def start(self) -> None:
        await self._context.services.blocking.run(self._start)
        self._context.on_tasks(self._tasks)
        self._watcher.subscribe(self)

    def _start(self) -> None:
        self._connector.configure(self._context.config)
        pipeline_for(self._settings.pipeline)  # raises if settings are invalid
        self._connector.start()
        if self._settings.errors.dead_letter_topic:
            ensure_dead_letter_topic(self._admin, self._settings.errors)
        self._committer.fence()

    async def stop(self) -> None:
        self._watcher.unsubscribe(self)
        await self._context.services.blocking.run(self._stop)

    def _stop(self) -> None:
        try:
            self._connector.stop()
        finally:
            self._committer.close()

    # What there is to do

    def on_partitions(self, partitions: Sequence[PartitionKey]) -> None:
        self._wanted = tuple(partitions)
        self._changed.set()

    def on_log_ends(self, ends: Mapping[PartitionKey, int]) -> None:
        if self._planner.on_log_ends(ends):
            self._context.on_work()
        elif not self._in_flight and self._wanted is None:
            self._on_idle(range(self._tasks))
        for key, position in self._planner.positions.items():
            if ends.get(key, position) < position:
                self._truncated_since_s.setdefault(key, time.monotonic())
                self._changed.set()
            else:
                self._truncated_since_s.pop(key, None)

    async def poll(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._in_flight:
                continue  # until the items are committed
            if self._wanted is not None:
                await self._update_partitions(self._wanted)
            await self._reset_truncated()

    async def _update_partitions(self, wanted: tuple[PartitionKey, ...]) -> None:
        known = self._planner.positions
        new = [key for key in wanted if key not in known]
        found = await self._committed(new)
        self._planner.set_partitions({key: known.get(key, found.get(key, 0)) for key in wanted})
        if self._wanted == wanted:
            self._wanted = None
        self._context.on_work()

    async def _committed(self, partitions: Sequence[PartitionKey]) -> dict[PartitionKey, int]:
        """Returns positions; those without any are reset as `auto.offset.reset` says."""
        committed = await self._context.services.blocking.run(self._committer.committed, partitions)
        missing = [key for key in partitions if key not in committed]
        if missing and self._reset == "none":
            raise ConnectError(
                f"Undefined offset with no reset policy for partitions: {missing}. Set "
                f"consumer.override.auto.offset.reset to earliest or latest."
            )
        spec = OffsetSpec.latest() if self._reset == "latest" else OffsetSpec.earliest()
        return committed | await self._watcher.offsets(missing, spec)

    async def _reset_truncated(self) -> None:
        """A topic that was created again has no record at the position."""
        now_s = time.monotonic()
        due = [
            key
            for key, since_s in self._truncated_since_s.items()
            if now_s - since_s > TRUNCATION_GRACE_S
        ]
        if not due:
            return
        log.warning("%s: offsets are out of range, and reset: %s", self._context.name, due)
        starts = await self._watcher.offsets(due, OffsetSpec.earliest())
        # Positions that are kept with the data would hide the new records.
        await self._context.services.blocking.run(self._connector.check_offsets, starts)
        self._planner.set_partitions({**self._planner.positions, **starts})
        for key in due:
            del self._truncated_since_s[key]

    # Items

    def plan(self) -> list[WorkItem]:
        if self._wanted is not None and self._planner.partitions == ():
            return []
        states = self._context.states
        ranges = self._planner.plan(states.may_run)
        self._on_idle(task for task in range(self._tasks) if task not in ranges)
        for task in ranges:
            states.on_planned(task)
        self._in_flight = bool(ranges)
        return [
            WorkItem(self._context.name, task, SinkItem(self._settings, task, of_task))
            for task, of_task in ranges.items()
        ]

    def _on_idle(self, tasks: Iterable[int]) -> None:
        states = self._context.states
        for task in tasks:
            if task < len(states) and states.may_run(task):
                states.on_idle(task)

    async def commit(self, reports: Sequence[WorkReport]) -> None:
        results = [report.result for report in reports]
        try:
            if results:
                written = [result.report for result in results]
                await self._context.services.blocking.run(self._committer.commit, written)
                for report in written:
                    self._planner.on_written(report.positions)
                    for topic, _ in report.positions:
                        self._context.on_topic(topic)
        finally:
            self._in_flight = False
            self._changed.set()
        self._context.on_work()

    async def recover(self) -> None:
        await self._context.services.blocking.run(self._committer.fence)
        partitions = self._planner.partitions
        committed = await self._context.services.blocking.run(self._committer.committed, partitions)
        self._planner.set_partitions({**self._planner.positions, **committed})

    def on_lost(self) -> bool:
        self._in_flight = False
        self._changed.set()
        return False


def sink_topics(config: Mapping[str, str]) -> SinkTopics:
    """Raises ConfigError unless the connector has either topics or a pattern that is valid."""
    names, pattern = listed(config, "topics"), config.get("topics.regex", "").strip()
    if bool(names) == bool(pattern):
        raise InvalidConfigError("Must configure one of topics or topics.regex")
    if pattern:
        return SinkTopics(pattern=compile_java(pattern))
    return SinkTopics(tuple(dict.fromkeys(names)))
