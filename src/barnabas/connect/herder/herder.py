"""`ConnectHerder`: what the REST API asks for, answered by one instance of a group.

The leader of the group decides on requests that change connectors, and appends records to the
config topic. Other instances forward such requests to it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.client.transactional_writer import RecordsTooLargeError
from barnabas.connect.errors import ConnectError
from barnabas.connect.herder.group import InstanceAssignment
from barnabas.connect.herder.instance import ConnectInstance, CreateEngine
from barnabas.connect.herder.requests import (
    Decide,
    decide_delete,
    decide_put,
    decide_restart,
    decide_target_state,
    patched,
    require_connector,
)
from barnabas.connect.herder.statuses import planned_restart
from barnabas.connect.model import (
    ConnectorInfo,
    ConnectorKind,
    ConnectorStatus,
    ForwardToLeaderError,
    RequestFailedError,
    State,
    StoredOffset,
    TargetState,
)
from barnabas.connect.storage.config_state import Config, ConfigState
from barnabas.connect.validation import check_connector_config, resolve
from barnabas.connect.worker_config import WorkerConfig

T = TypeVar("T")
CheckConfig = Callable[[Mapping[str, str | None], Mapping[str, str]], ConnectorKind]

_log = logging.getLogger(__name__)
_WAIT_FOR_GROUP_S = 10.0
"""How long a request waits for a rebalance, before it fails with 409."""
_WAIT_FOR_STOP_S = 5.0
_POLL_S = 0.01
_CONFLICT = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
_NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be "
    "done for the specified connector by issuing a 'PUT' request to the '/connectors/{}/stop' "
    "endpoint"
)
_EXTERNAL_OFFSETS = (
    "The Connect framework-managed offsets for this connector have been {} successfully. However, "
    "if this connector manages offsets externally, they will need to be manually {} in the system "
    "that the connector uses."
)
_FENCED = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)


class ConnectHerder:
    """Lives on one event loop. Implements `Herder`."""

    def __init__(
        self,
        config: WorkerConfig,
        url: str,
        create_engine: CreateEngine,
        *,
        check_config: CheckConfig = check_connector_config,
    ) -> None:
        """`url` is that of the REST API, at which other instances reach this one."""
        self.worker_config = config
        self.instance = ConnectInstance(config, url, create_engine)
        self._check_config = check_config

    async def start(self) -> None:
        """Raises TopicError or KafkaException if the topics cannot be used."""
        await self.instance.start()

    async def stop(self) -> None:
        """Ends the micro-batches that run, and leaves the group."""
        await self.instance.stop()

    @property
    def kafka_cluster_id(self) -> str:
        return self.instance.kafka_cluster_id

    @property
    def health(self) -> tuple[str, str]:
        return self.instance.health

    # Requests that read

    async def connectors(self) -> list[str]:
        return sorted((await self._state()).connectors)

    async def connector_info(self, name: str) -> ConnectorInfo:
        state = await self._state()
        config = require_connector(name, state)
        return ConnectorInfo(name, config, len(state.task_configs(name)), _kind_of(config))

    async def connector_config(self, name: str) -> Mapping[str, str]:
        return require_connector(name, await self._state())

    async def connector_status(self, name: str) -> ConnectorStatus:
        state = await self._state()
        status = self.instance.status_topic.state.connectors.get(name)
        config = state.connectors.get(name)
        if status is None or config is None:
            raise RequestFailedError(404, f"No status found for connector {name}")
        tasks = self.instance.status_topic.state.tasks(name)
        return ConnectorStatus(name, _kind_of(config), status, tasks)

    async def task_configs(self, name: str) -> list[Mapping[str, str]]:
        state = await self._state()
        require_connector(name, state)
        return list(state.task_configs(name))

    async def active_topics(self, name: str) -> list[str]:
        await self._state()
        return sorted(self.instance.status_topic.state.topics(name))

    async def offsets(self, name: str) -> list[StoredOffset]:
        config = require_connector(name, await self._state())
        return await self.instance.engine.offsets(name, self.instance.resolve_config(config))

    # Requests that change connectors

    async def put_config(
        self,
        name: str,
        config: Mapping[str, str],
        *,
        may_exist: bool,
        initial_state: TargetState | None = None,
    ) -> tuple[bool, ConnectorInfo]:
        await self._require_leader()
        kind = await asyncio.to_thread(self._check, config)
        self._require_other_group(name, kind)
        is_new = await self._write(
            lambda state: decide_put(
                name, config, state, may_exist=may_exist, initial_state=initial_state
            )
        )
        return is_new, await self.connector_info(name)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        await self._require_leader()
        config = patched(require_connector(name, await self._state()), changes)
        await self.put_config(name, config, may_exist=True)
        return await self.connector_info(name)

    async def delete(self, name: str) -> None:
        await self._write(lambda state: decide_delete(name, state))

    async def set_target_state(self, name: str, target: TargetState) -> None:
        await self._write(lambda state: decide_target_state(name, target, state))

    async def restart(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        await self._write(
            lambda state: decide_restart(
                name, state, include_tasks=include_tasks, only_failed=only_failed
            )
        )
        if not include_tasks and not only_failed:
            return None
        return _restarting(
            await self.connector_status(name),
            include_tasks=include_tasks,
            only_failed=only_failed,
        )

    async def restart_task(self, name: str, task: int) -> None:
        state = await self._state()
        if name not in state.connectors:
            raise RequestFailedError(404, f"Unknown connector: {name}")
        assignment = await self._require_member()
        if name in assignment.connectors:
            self._restart_own_task(name, task)
            return
        owner = assignment.group.owner_url(name)
        if owner is None or owner == self.instance.url:
            raise RequestFailedError(409, _CONFLICT)
        raise ForwardToLeaderError(owner)

    def _restart_own_task(self, name: str, task: int) -> None:
        configs = self.instance.config_topic.state.task_configs(name)
        if task >= len(configs) and task not in self.instance.status_topic.state.tasks(name):
            raise RequestFailedError(404, f"Unknown task: {name}-{task}")
        self.instance.runner.restart(name, connector=False, tasks=[task])

    async def reset_active_topics(self, name: str) -> None:
        await self._state()
        self.instance.statuses.remove_topics(name)
        await self.instance.flush_statuses()

    async def alter_offsets(self, name: str, offsets: Sequence[StoredOffset] | None) -> str:
        await self._require_leader()
        config = require_connector(name, await self._state())
        await self._require_stopped(name)
        is_complete = await self.instance.engine.alter_offsets(
            name, self.instance.resolve_config(config), offsets
        )
        done = "reset" if offsets is None else "altered"
        if not is_complete:
            return _EXTERNAL_OFFSETS.format(done, done)
        return f"The offsets for this connector have been {done} successfully"

    async def set_logger_level(self, logger: str, level: str) -> None:
        await self._state()
        await self.instance.config_topic.put_logger_level(logger, level)

    # What requests need

    async def _state(self) -> ConfigState:
        try:
            async with asyncio.timeout(_WAIT_FOR_GROUP_S):
                await self.instance.is_started.wait()
        except TimeoutError:
            raise RequestFailedError(
                503, f"There is no broker at {self.worker_config.bootstrap_servers} yet"
            ) from None
        return self.instance.config_topic.state

    async def _require_member(self) -> InstanceAssignment:
        await self._state()
        assignment = await self.instance.group.wait_until_member(_WAIT_FOR_GROUP_S)
        if assignment is None:
            raise RequestFailedError(409, _CONFLICT)
        return assignment

    async def _require_leader(self) -> None:
        assignment = await self._require_member()
        if not assignment.is_leader:
            raise ForwardToLeaderError(assignment.group.leader_url)

    async def _write(self, decide: Decide[T]) -> T:
        """Decides on the state of all earlier writes. Returns when the records are applied."""
        await self._require_leader()
        async with self.instance.write_lock:
            try:
                if not self.instance.config_topic.is_leader:
                    await self.instance.config_topic.become_leader()
                decision = decide(self.instance.config_topic.state)
                if decision.records:
                    await self.instance.config_topic.append(decision.records)
                return decision.response
            except RecordsTooLargeError as error:
                raise RequestFailedError(400, f"The settings are too large: {error}") from None
            except (KafkaException, TimeoutError) as error:
                self.instance.group.request_rebalance()
                raise _write_failed(self.instance.config_topic.topic, error) from None

    def _check(self, config: Mapping[str, str]) -> ConnectorKind:
        return self._check_config(
            resolve(config, self.worker_config.originals), dict(self.worker_config.originals)
        )

    def _require_other_group(self, name: str, kind: ConnectorKind) -> None:
        group_id = self.worker_config.group_id
        if kind is ConnectorKind.SINK and f"connect-{name}" == group_id:
            raise RequestFailedError(
                400,
                f"Consumer group for sink connector named {name} conflicts with Connect worker "
                f"group {group_id}",
            )

    async def _require_stopped(self, name: str) -> None:
        error = RequestFailedError(400, _NOT_STOPPED.format(name))
        if self.instance.config_topic.state.target_state(name) is not TargetState.STOPPED:
            raise error
        deadline_s = asyncio.get_running_loop().time() + _WAIT_FOR_STOP_S
        while self._may_run(name):
            if asyncio.get_running_loop().time() > deadline_s:
                raise error
            await asyncio.sleep(_POLL_S)

    def _may_run(self, name: str) -> bool:
        status = self.instance.status_topic.state.connectors.get(name)
        return status is not None and status.state not in (State.STOPPED, State.UNASSIGNED)


def _write_failed(topic: str, error: KafkaException | TimeoutError) -> RequestFailedError:
    kafka_error = error_in(error) if isinstance(error, KafkaException) else None
    text = "timed out" if kafka_error is None else kafka_error.str()
    _log.warning("write to topic %s: %s", topic, text)
    if kafka_error is not None and kafka_error.code() in _FENCED:
        return RequestFailedError(409, _CONFLICT)  # another instance has become the leader
    return RequestFailedError(500, f"Failed to write to topic {topic}: {text}")


def _kind_of(config: Config) -> ConnectorKind:
    from barnabas.connect.connector import SinkConnector, SourceConnector
    from barnabas.connect.plugins import find_connector

    try:
        found = find_connector(config.get("connector.class", ""), config)
    except ConnectError:  # the package is not installed here
        return ConnectorKind.UNKNOWN
    if issubclass(found, SinkConnector):
        return ConnectorKind.SINK
    return ConnectorKind.SOURCE if issubclass(found, SourceConnector) else ConnectorKind.UNKNOWN


def _restarting(
    status: ConnectorStatus, *, include_tasks: bool, only_failed: bool
) -> ConnectorStatus:
    """Returns the status as it will be: what is being restarted is RESTARTING."""
    connector, tasks = planned_restart(
        status.connector, status.tasks, include_tasks=include_tasks, only_failed=only_failed
    )
    restarting = {
        task: replace(each, state=State.RESTARTING, trace=None) if task in tasks else each
        for task, each in status.tasks.items()
    }
    return replace(
        status,
        connector=replace(status.connector, state=State.RESTARTING, trace=None)
        if connector
        else status.connector,
        tasks=restarting,
    )
