"""A source in the driver: looks for new rows, plans items, commits positions."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Mapping, Sequence

from barnabas.connect.connector import Partition, Position, SourceConnector
from barnabas.connect.errors import RetriableError
from barnabas.connect.execution.committer import SourceCommitter
from barnabas.connect.execution.dead_letters import ensure_dead_letter_topic
from barnabas.connect.execution.open_transactions import recover_positions
from barnabas.connect.execution.pipeline import pipeline_for
from barnabas.connect.execution.planner import SourcePartitionState, SourcePlanner
from barnabas.connect.execution.settings import (
    SERVERS,
    client_settings,
    error_settings,
    pipeline_settings,
    require_one_cluster,
    task_settings,
)
from barnabas.connect.execution.source_item import (
    SourceItem,
    SourceRead,
    SourceResult,
    SourceTaskSettings,
)
from barnabas.connect.execution.topic_creation import topic_groups
from barnabas.connect.execution.work import RunContext
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.sink.protocol import WriteJob

log = logging.getLogger("barnabas.connect")

PARTITIONS_INTERVAL_S = 10.0
"""How often the connector is asked for its partitions."""

ORPHANS_DELAY_S = 10.0
"""For how long tasks of a driver that died may still begin transactions."""

PRODUCER_DEFAULTS = {
    "batch.size": str(1 << 18),
    "linger.ms": "5",
    "max.block.ms": "60000",
    "transaction.timeout.ms": "300000",
}
"""The timeout has to be longer than a micro-batch. A transaction that times out is read again."""

_NOT_FOR_TASKS = ("key.serializer", "value.serializer", "transactional.id", "client.id")


class SourceWork:
    """Implements `ConnectorWork`."""

    def __init__(self, context: RunContext) -> None:
        services, config = context.services, context.config
        worker = services.worker
        self._context = context
        self._blocking = services.blocking
        tasks = task_settings(config, worker.originals)
        self._max_rows = tasks.max_rows
        self._settings = SourceTaskSettings(
            connector=context.connector,  # type: ignore[arg-type]
            config=config,
            pipeline=pipeline_settings(config, worker.originals),
            errors=error_settings(config),
            producer={
                **PRODUCER_DEFAULTS,
                **client_settings("producer", config, worker.client("producer"), _NOT_FOR_TASKS),
            },
            admin=client_settings("admin", config, worker.client("admin")),
            topic_groups=topic_groups(config, worker.originals),
            offset_topic=services.positions.topic,
        )
        self._connector: SourceConnector = context.connector()  # type: ignore[assignment]
        self._committer: SourceCommitter | None = None
        if worker.exactly_once:
            require_one_cluster(
                {
                    "worker": worker.client("producer").get(SERVERS),
                    "producer": self._settings.producer.get(SERVERS),
                    "admin": self._settings.admin.get(SERVERS),
                },
                "the positions are written in the transactions of the rows",
            )
            self._committer = SourceCommitter(
                worker.group_id, context.name, services.run, self._settings.producer
            )
        if (
            config.get("offsets.storage.topic", services.positions.topic)
            != services.positions.topic
        ):
            log.warning(
                "%s: offsets.storage.topic has no effect: positions are stored in %s",
                context.name,
                services.positions.topic,
            )
        self._planner = SourcePlanner(tasks.tasks_max)
        self._partitions: Sequence[Partition] = ()
        self._partitions_due_s = 0.0
        self._job: WriteJob | None = None
        self._in_flight = False
        self._orphans_due_s = math.inf
        self._is_checking = False
        """Whether orphans are looked for, which no item must be taken for."""
        self._wake = asyncio.Event()

    async def start(self) -> None:
        await self._blocking.run(self._start)
        await self.recover()
        await self._update_partitions()

    def _start(self) -> None:
        self._connector.configure(self._context.config)
        pipeline_for(self._settings.pipeline)  # raises if settings are invalid
        self._connector.start()
        if self._settings.errors.dead_letter_topic:
            ensure_dead_letter_topic(self._settings.admin, self._settings.errors)

    async def stop(self) -> None:
        await self._blocking.run(self._stop)

    def _stop(self) -> None:
        try:
            self._connector.stop()
        finally:
            if self._committer is not None:
                self._committer.close()

    async def recover(self) -> None:
        positions = self._context.services.positions
        if self._committer is not None:
            await recover_positions(
                self._committer, self._settings.admin, positions.topic, self._blocking
            )
        await positions.read_to_end()
        self._planner.reset_positions(self._position_of)
        self._orphans_due_s = time.monotonic() + ORPHANS_DELAY_S
        self._wake.set()

    def _position_of(self, partition: Partition) -> Position | None:
        return self._context.services.positions.offset(self._context.name, partition)

    # What there is to do

    async def poll(self) -> None:
        while True:
            if time.monotonic() >= self._partitions_due_s:
                await self._update_partitions()
            self._apply_partitions()
            await self._check_partitions()
            await self._check_orphans()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s()):  # wait_for may lose a cancellation
                    await self._wake.wait()

    async def _update_partitions(self) -> None:
        """Raises what the connector raises, except errors that may go away."""
        self._partitions_due_s = time.monotonic() + PARTITIONS_INTERVAL_S
        try:
            self._partitions = await self._blocking.run(self._connector.partitions)
        except RetriableError as error:
            log.warning("%s: cannot list partitions: %s", self._context.name, error)
        self._apply_partitions()

    def _apply_partitions(self) -> None:
        if self._in_flight:
            return  # until the items are committed
        if not self._planner.has_partitions(self._partitions):
            self._planner.set_partitions(self._partitions, self._position_of)
        if self._planner.tasks != len(self._context.states):
            self._context.on_tasks(self._planner.tasks)

    async def _check_partitions(self) -> None:
        """Asks the connector whether there is something new in partitions that were read."""
        now_s = time.monotonic()
        states = self._context.states
        due = [
            (task, state)
            for task, state in self._planner.states()
            if not state.is_ready and state.check_s <= now_s and states.may_run(task)
        ]
        if due and not self._in_flight:
            found = await self._blocking.run(self._has_new, [state for _, state in due])
            for (task, state), has_new in zip(due, found, strict=True):
                self._on_checked(task, state, has_new)
        ready = {task for task, state in self._planner.states() if state.is_ready}
        if ready and not self._in_flight:
            self._context.on_work()
        if not self._in_flight:
            self._on_idle(ready)

    async def _check_orphans(self) -> None:
        """Once after a recovery: tasks of an earlier driver may have begun transactions later."""
        if self._committer is None or self._in_flight or time.monotonic() < self._orphans_due_s:
            return
        self._orphans_due_s = math.inf
        self._is_checking = True
        try:
            await self._blocking.run(self._committer.abort_orphans)
        finally:
            self._is_checking = False
        self._context.on_work()

    def _has_new(self, states: Sequence[SourcePartitionState]) -> list[bool | Exception]:
        results: list[bool | Exception] = []
        for state in states:
            try:
                results.append(self._connector.has_new(state.partition, state.position))
            except Exception as error:
                results.append(error)
        return results

    def _on_checked(self, task: int, state: SourcePartitionState, found: bool | Exception) -> None:
        state.check_s = time.monotonic() + self._interval_s
        if isinstance(found, Exception):
            self._context.on_task_error(task, found)
        else:
            state.is_ready = found

    def _on_idle(self, busy: set[int]) -> None:
        states = self._context.states
        for task in range(len(states)):
            if task not in busy and states.may_run(task):
                states.on_idle(task)

    @property
    def _interval_s(self) -> float:
        return max(self._connector.poll_interval_ms, 1) / 1000

    def _pause_s(self) -> float:
        now_s = time.monotonic()
        times = [state.check_s for _, state in self._planner.states() if not state.is_ready]
        until_s = min([self._partitions_due_s, self._orphans_due_s, *times])
        if self._in_flight:
            return max(self._interval_s, 1.0)
        delay_s = self._context.states.retry_delay_s()
        if delay_s is not None:
            until_s = max(until_s, now_s + min(delay_s, self._interval_s))
        return max(until_s - now_s, 0.001)

    # Items

    def plan(self) -> list[WorkItem]:
        states = self._context.states
        planned = {} if self._is_checking else self._planner.plan(states.may_run)
        if not planned:
            return []
        self._in_flight = True
        self._job = None if self._committer is None else self._committer.next_job()
        for task in planned:
            states.on_planned(task)
        return [
            WorkItem(
                self._context.name,
                task,
                SourceItem(
                    self._settings,
                    task,
                    tuple(map(self._read_of, of_task)),
                    self._max_rows,
                    self._job,
                    frozenset() if self._committer is None else self._committer.decided,
                ),
            )
            for task, of_task in planned.items()
        ]

    def _read_of(self, state: SourcePartitionState) -> SourceRead:
        key, _ = self._context.services.positions.record(self._context.name, state.partition, {})
        return SourceRead(state.partition, state.position, key)

    async def commit(self, reports: Sequence[WorkReport]) -> None:
        results: list[SourceResult] = [report.result for report in reports]
        progress = [each for result in results for each in result.progress]
        moved = [(each.partition, each.position) for each in progress if each.position is not None]
        try:
            await self._commit(results, moved)
            for each in progress:
                self._planner.on_read(each.partition, each.position, self._interval_s)
            for topic in {topic for result in results for topic in result.topics}:
                self._context.on_topic(topic)
        finally:
            self._in_flight = False
            self._wake.set()
        if moved:
            await self._notify_connector(moved)

    async def _commit(
        self, results: Sequence[SourceResult], moved: Sequence[tuple[Partition, Position]]
    ) -> None:
        if self._committer is None:
            if moved:
                await self._context.services.positions.write(self._context.name, moved)
            return
        written = [result.written for result in results if result.written is not None]
        if written:
            assert self._job is not None
            await self._blocking.run(self._committer.commit, self._job, written)

    async def _notify_connector(self, moved: Sequence[tuple[Partition, Mapping]]) -> None:  # type: ignore[type-arg]
        """An error changes nothing any more, so it is logged only, as in Kafka Connect."""
        try:
            await self._blocking.run(self._connector.commit, moved)
        except Exception:
            log.exception("%s: commit of the connector failed", self._context.name)

    def on_lost(self) -> bool:
        self._in_flight = False
        self._wake.set()
        return self._committer is not None
