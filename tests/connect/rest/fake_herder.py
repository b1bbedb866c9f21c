"""A herder in memory, with the error texts of Connect's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from barnabas.connect.model import (
    ConnectorInfo,
    ConnectorStatus,
    ForwardToLeaderError,
    RequestFailedError,
    State,
    Status,
    StoredOffset,
    TargetState,
)
from barnabas.connect.validation import check_connector_config

WORKER_ID = "worker-1:8083"
_STATES = {
    TargetState.STARTED: State.RUNNING,
    TargetState.PAUSED: State.PAUSED,
    TargetState.STOPPED: State.STOPPED,
}


@dataclass(slots=True)
class FakeHerder:
    """Connectors run at once, with one task each."""

    kafka_cluster_id: str = "cluster-0"
    health: tuple[str, str] = ("healthy", "All is well.")
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    targets: dict[str, TargetState] = field(default_factory=dict)
    failed_tasks: dict[str, str] = field(default_factory=dict)
    """Traces by connector."""
    positions: dict[str, list[StoredOffset]] = field(default_factory=dict)
    restarted: list[tuple[str, object]] = field(default_factory=list)
    cluster_levels: dict[str, str] = field(default_factory=dict)
    leader_url: str | None = None
    is_leader: bool = True

    async def connectors(self) -> list[str]:
        return list(self.configs)

    async def connector_info(self, name: str) -> ConnectorInfo:
        config = await self.connector_config(name)
        kind = check_connector_config(config)
        is_stopped = self.targets[name] is TargetState.STOPPED
        return ConnectorInfo(name, config, 0 if is_stopped else 1, kind)

    async def connector_config(self, name: str) -> Mapping[str, str]:
        if name not in self.configs:
            raise RequestFailedError(404, f"Connector {name} not found")
        return self.configs[name]

    async def connector_status(self, name: str) -> ConnectorStatus:
        if name not in self.configs:
            raise RequestFailedError(404, f"No status found for connector {name}")
        info = await self.connector_info(name)
        state = _STATES[self.targets[name]]
        trace = self.failed_tasks.get(name)
        task = Status(State.FAILED if trace else state, WORKER_ID, trace)
        return ConnectorStatus(
            name, info.kind, Status(state, WORKER_ID), dict.fromkeys(range(info.tasks), task)
        )

    async def task_configs(self, name: str) -> list[Mapping[str, str]]:
        return [{**await self.connector_config(name), "task.class": "Task"}]

    async def put_config(
        self,
        name: str,
        config: Mapping[str, str],
        *,
        may_exist: bool,
        initial_state: TargetState | None = None,
    ) -> tuple[bool, ConnectorInfo]:
        self._require_leader()
        check_connector_config(config)
        is_new = name not in self.configs
        if not is_new and not may_exist:
            raise RequestFailedError(409, f"Connector {name} already exists")
        self.configs[name] = dict(config)
        if is_new:
            self.targets[name] = initial_state or TargetState.STARTED
        return is_new, await self.connector_info(name)

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo:
        config = {**await self.connector_config(name), **changes}
        kept = {key: value for key, value in config.items() if value is not None}
        return (await self.put_config(name, kept, may_exist=True))[1]

    async def delete(self, name: str) -> None:
        self._require_leader()
        await self.connector_config(name)
        del self.configs[name]

    async def set_target_state(self, name: str, target: TargetState) -> None:
        if name not in self.configs:
            raise RequestFailedError(404, f"Unknown connector {name}")
        self.targets[name] = target

    async def restart(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        if name not in self.configs:
            raise RequestFailedError(404, f"Unknown connector: {name}")
        self.restarted.append((name, (include_tasks, only_failed)))
        status = await self.connector_status(name)
        return status if include_tasks or only_failed else None

    async def restart_task(self, name: str, task: int) -> None:
        if task > 0:
            raise RequestFailedError(404, f"Unknown task: {name}-{task}")
        self.restarted.append((name, task))

    async def active_topics(self, name: str) -> list[str]:
        return ["lines"] if name in self.configs else []

    async def reset_active_topics(self, name: str) -> None:
        self.restarted.append((name, "topics"))

    async def offsets(self, name: str) -> list[StoredOffset]:
        await self.connector_config(name)
        return self.positions.get(name, [])

    async def alter_offsets(self, name: str, offsets: Sequence[StoredOffset] | None) -> str:
        await self.connector_config(name)
        self.positions[name] = list(offsets or ())
        return "reset" if offsets is None else "altered"

    async def set_logger_level(self, logger: str, level: str) -> None:
        self.cluster_levels[logger] = level

    def _require_leader(self) -> None:
        if not self.is_leader:
            raise ForwardToLeaderError(self.leader_url)
