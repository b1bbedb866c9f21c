"""One instance of the group: its topics, its place in the group, and the connectors it runs.

The state is what the config and the status topic contain. Every instance applies their records,
runs what is assigned to it, and stores the statuses of that.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from barnabas.config.providers import resolve_references
from barnabas.connect.herder.connector_runner import ConnectorRunner
from barnabas.connect.herder.group import HerderGroup, InstanceAssignment
from barnabas.connect.herder.status_writer import StatusWriter
from barnabas.connect.herder.statuses import InstanceStatuses, planned_restart
from barnabas.connect.log_levels import set_logger_level
from barnabas.connect.model import (
    ConnectorEngine,
    RequestFailedError,
    State,
    StatusListener,
)
from barnabas.connect.storage.config_state import (
    Config,
    ConfigChange,
    ConnectorConfigChanged,
    ConnectorRemoved,
    LoggerLevelSet,
    RestartRequested,
    TargetStateChanged,
)
from barnabas.connect.storage.config_topic import ConfigTopic
from barnabas.connect.storage.offset_topic import OffsetTopic
from barnabas.connect.storage.status_topic import StatusTopic
from barnabas.connect.worker_config import WorkerConfig

CreateEngine = Callable[[OffsetTopic, StatusListener], ConnectorEngine]

_log = logging.getLogger(__name__)
_FIRST_ENGINE_PAUSE_S = 1.0
_MAX_ENGINE_PAUSE_S = 60.0


class ConnectInstance:
    """Lives on one event loop."""

    def __init__(self, config: WorkerConfig, url: str, create_engine: CreateEngine) -> None:
        """`url` is that of the REST API, at which other instances reach this one."""
        self.worker_config = config
        self.url = url
        self.kafka_cluster_id = ""
        self.write_lock = asyncio.Lock()
        """Held while this instance writes to the config topic as the leader."""
        self._task_configs_lock = asyncio.Lock()
        self.config_topic = _config_topic(config, self._on_config_change)
        self.status_topic = _status_topic(config)
        self.offset_topic = _offset_topic(config)
        self._status_writer = StatusWriter(self.status_topic)
        self.statuses = InstanceStatuses(
            self.status_topic.state, self._status_writer, _address(url)
        )
        self.engine = create_engine(self.offset_topic, self)
        self.runner = ConnectorRunner(self.engine, lambda: self.config_topic.state, self)
        self.group = HerderGroup(config, url, self.config_topic, self.runner, self._on_assignment)
        self.is_started = asyncio.Event()
        """The topics have been read."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_engine_started = False
        self._engine_error = ""
        self._is_stopping = False

    async def start(self) -> None:
        """Returns when the topics were read to their ends; the rest starts in the background.

        Raises TopicError or KafkaException if the topics cannot be used.
        """
        await asyncio.gather(
            self.config_topic.start(), self.status_topic.start(), self.offset_topic.start()
        )
        self.kafka_cluster_id = await self.group.describe_cluster(
            self.worker_config.values["barnabas.start.timeout.ms"]
        )
        self.statuses.start()
        self._status_writer.start()
        self.is_started.set()
        self._run_in_background(self.group.run())
        self._run_in_background(self._start_engine())

    async def stop(self) -> None:
        """Ends the micro-batches that run, and leaves the group.

        This instance is a member until it has ended its connectors: nobody starts them before.
        """
        self._is_stopping = True
        await self.runner.stop()
        await self.engine.stop()
        await self._status_writer.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.group.leave()
        await self.group.close()
        await asyncio.gather(
            self.config_topic.stop(), self.status_topic.stop(), self.offset_topic.stop()
        )

    @property
    def health(self) -> tuple[str, str]:
        if self._engine_error:
            return "unhealthy", self._engine_error
        if not self.is_started.is_set() or not self._is_engine_started:
            return "starting", "Worker is still starting up."
        if self.group.current is None:
            return "starting", "Worker has not joined the group of workers yet."
        return "healthy", "Worker has completed startup and is ready to handle requests."

    async def flush_statuses(self) -> None:
        await self._status_writer.flush()

    def _run_in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_background_done)

    def _on_background_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("the instance has failed in the background", exc_info=error)

    async def _start_engine(self) -> None:
        pause_s = _FIRST_ENGINE_PAUSE_S
        while True:
            try:
                await self.engine.start()
                break
            except Exception as error:
                self._engine_error = f"Spark cannot be started: {error}"
                _log.exception("Spark cannot be started; trying again in %g s", pause_s)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _MAX_ENGINE_PAUSE_S)
        self._engine_error = ""
        self._is_engine_started = True
        self.runner.open()

    # What changes

    def _on_config_change(self, change: ConfigChange) -> None:
        """Called for each record of the config topic."""
        match change:
            case ConnectorConfigChanged(name):
                self.runner.on_changed(name, is_rewritten=True)
                self._rebalance_if(lambda group: name not in group.group.connectors)
            case ConnectorRemoved(name):
                self.runner.on_changed(name)
                self._rebalance_if(lambda _: True)
            case TargetStateChanged(name):
                self.runner.on_changed(name)
            case RestartRequested(name, include_tasks, only_failed):
                if name in self.runner.running:
                    self._run_in_background(
                        self._restart(name, include_tasks=include_tasks, only_failed=only_failed)
                    )
            case LoggerLevelSet(namespace, level):
                set_logger_level(namespace, level)

    def _rebalance_if(self, condition: Callable[[InstanceAssignment], bool]) -> None:
        current = self.group.current
        if current is not None and current.is_leader and condition(current):
            self.group.request_rebalance()

    async def _restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        await self._status_writer.flush()
        await self.status_topic.read_to_end()  # what has failed before the request
        status = self.status_topic.state.connectors.get(name)
        if status is None:
            return
        connector, tasks = planned_restart(
            status,
            self.status_topic.state.tasks(name),
            include_tasks=include_tasks,
            only_failed=only_failed,
        )
        if connector or tasks:
            self.runner.restart(name, connector=connector, tasks=tasks)

    def _on_assignment(self) -> None:
        current = self.group.current
        if self._is_stopping:
            return
        if current is None:
            self.runner.set_assigned(frozenset())
            return
        self.statuses.set_generation(current.generation.generation_id)
        self.runner.set_assigned(self.runner.assigned & current.connectors)
        self._run_in_background(self._apply_assignment(current))

    async def _apply_assignment(self, assignment: InstanceAssignment) -> None:
        """Starts and ends connectors, once this instance has read what the leader had read."""
        with contextlib.suppress(TimeoutError):
            await self.config_topic.wait_until_applied(assignment.group.config_offset)
        if self._is_stopping or self.group.current is not assignment:
            return  # a newer one is applied
        self.runner.set_assigned(assignment.connectors)
        if not assignment.is_leader:
            async with self.write_lock:  # a write in progress may end
                await self.config_topic.resign()
            return
        names = set(self.config_topic.state.connectors)
        living = [_address(each) for each in assignment.group.urls.values()]
        self.statuses.replace_lost(names, living)
        self.statuses.remove_others(names | self.runner.running)
        if names != self.group.considered:  # something was added or removed meanwhile
            self.group.request_rebalance()

    # What the runner calls

    def resolve_config(self, config: Config) -> Mapping[str, str]:
        resolved, problems = resolve_references(config, self.worker_config.originals)
        if problems:
            raise RequestFailedError(400, "\n".join(problems))
        return resolved

    def on_not_started(self, name: str, trace: str) -> None:
        self.statuses.put_connector(name, State.FAILED, trace)

    def on_released(self, name: str) -> None:
        if name in self.config_topic.state.connectors:
            self.statuses.put_unassigned(name, len(self.status_topic.state.tasks(name)))
            self.group.request_rebalance()  # now another instance may start it
        else:
            self.statuses.remove(name)

    # What the engine calls

    def on_connector_status(self, name: str, state: State, trace: str | None = None) -> None:
        if self._is_reported(name):
            self.statuses.put_connector(name, state, trace)

    def on_task_status(self, name: str, task: int, state: State, trace: str | None = None) -> None:
        if self._is_reported(name):
            self.statuses.put_task(name, task, state, trace)

    def on_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        if not self._is_reported(name):
            return
        self.statuses.remove_tasks(name, len(configs))
        stored = [self.runner.with_references(name, config) for config in configs]
        self._run_in_background(self._store_task_configs(name, stored))

    async def _store_task_configs(self, name: str, configs: Sequence[Config]) -> None:
        async with self._task_configs_lock:  # in order, and compared with what came before
            if configs != self.config_topic.state.task_configs(name):
                await self.config_topic.put_task_configs(
                    name, configs, is_exactly_once=self.worker_config.exactly_once
                )

    def on_topic_used(self, name: str, topic: str) -> None:
        if self.worker_config.values["topic.tracking.enable"] and self._is_reported(name):
            self.statuses.put_topic(name, topic)

    def _is_reported(self, name: str) -> bool:
        """Whether the connector exists and runs here: late news of another are not stored."""
        return name in self.runner.running and name in self.config_topic.state.connectors


def _address(url: str) -> str:
    """Returns the host and port of a URL: the id of a worker."""
    return url.partition("://")[2]


# The topics


def _config_topic(config: WorkerConfig, on_change: Callable[[ConfigChange], None]) -> ConfigTopic:
    topic = config.storage("config")
    return ConfigTopic(
        topic.name,
        config.group_id,
        config.worker_client,
        on_change,
        replication_factor=topic.replication_factor,
        topic_configs=topic.configs,
    )


def _status_topic(config: WorkerConfig) -> StatusTopic:
    topic = config.storage("status")
    return StatusTopic(
        topic.name,
        config.worker_client,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=topic.configs,
    )


def _offset_topic(config: WorkerConfig) -> OffsetTopic:
    topic = config.storage("offset")
    return OffsetTopic(
        topic.name,
        config.worker_client,
        partitions=topic.partitions,
        replication_factor=topic.replication_factor,
        topic_configs=topic.configs,
    )
