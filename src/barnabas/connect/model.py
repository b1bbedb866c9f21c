"""What the REST API, the herder and the engine exchange."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class TargetState(StrEnum):
    """What the operator wants of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(StrEnum):
    """What a connector or a task is doing."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"
    """Only of connectors."""


class ConnectorKind(StrEnum):
    SOURCE = "source"
    SINK = "sink"
    UNKNOWN = "unknown"


@dataclass(slots=True, frozen=True)
class Status:
    """The state of a connector or a task, and who runs it."""

    state: State
    worker_id: str
    """host:port of the REST API of the instance."""
    trace: str | None = None
    generation: int = 0


@dataclass(slots=True, frozen=True)
class ConnectorStatus:
    name: str
    kind: ConnectorKind
    connector: Status
    tasks: Mapping[int, Status] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class ConnectorInfo:
    name: str
    config: Mapping[str, str]
    tasks: int
    kind: ConnectorKind


@dataclass(slots=True, frozen=True)
class StoredOffset:
    """A position as the REST API shows it: for a sink, {kafka_topic, kafka_partition} and
    {kafka_offset}."""

    partition: Mapping[str, Any]
    offset: Mapping[str, Any] | None


class RequestFailedError(Exception):
    """A request of the REST API fails: its HTTP status, and the message of its body."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class ForwardToLeaderError(Exception):
    """Only the leader of the group can serve the request."""

    def __init__(self, leader_url: str | None) -> None:
        super().__init__(leader_url)
        self.leader_url = leader_url
        """None while the leader is not known."""


class StatusListener(Protocol):
    """The engine reports changes to it, in the event loop; the herder stores them."""

    def on_connector_status(self, name: str, state: State, trace: str | None = None) -> None: ...

    def on_task_status(
        self, name: str, task: int, state: State, trace: str | None = None
    ) -> None: ...

    def on_task_configs(self, name: str, configs: Sequence[Mapping[str, str]]) -> None:
        """The connector has other tasks than before."""
        ...

    def on_topic_used(self, name: str, topic: str) -> None:
        """The connector has read or written a topic."""
        ...


class ConnectorEngine(Protocol):
    """Runs the connectors of this instance on Spark. All methods are called in the event loop.

    States reach the `StatusListener`, and are always true: a failed task is FAILED until it is
    RESTARTING, and it is RUNNING only after its restart has succeeded.
    """

    async def start(self) -> None:
        """Starts the Spark session and what runs connectors on it."""
        ...

    async def stop(self) -> None:
        """Ends the micro-batches that run, commits them, and releases everything."""
        ...

    async def run_connector(
        self, name: str, config: Mapping[str, str], target: TargetState
    ) -> None:
        """Starts a connector, or changes its settings or target state.

        Returns as soon as an older run of it can write nothing more; the start itself goes on in
        the background. `config` has no references to config providers any more.
        """
        ...

    async def release_connector(self, name: str) -> None:
        """Ends a connector that was deleted, or that another instance takes over. When it returns,
        this instance writes nothing for it any more, and its progress is committed."""
        ...

    async def restart(self, name: str, *, connector: bool, tasks: Sequence[int]) -> None:
        """Starts failed or running parts again, at once."""
        ...

    async def offsets(self, name: str, config: Mapping[str, str]) -> list[StoredOffset]:
        """Returns the committed positions of a connector, which need not run here."""
        ...

    async def alter_offsets(
        self, name: str, config: Mapping[str, str], offsets: Sequence[StoredOffset] | None
    ) -> bool:
        """Changes positions of a stopped connector; None resets all of them.

        Returns whether the framework keeps all of them (`Connector.check_offsets`). Raises
        RequestFailed.
        """
        ...


class Herder(Protocol):
    """What the REST API asks for. Methods raise RequestFailed and ForwardToLeader."""

    @property
    def kafka_cluster_id(self) -> str: ...

    @property
    def health(self) -> tuple[str, str]:
        """healthy, starting or unhealthy; and a message."""
        ...

    async def connectors(self) -> list[str]: ...

    async def connector_info(self, name: str) -> ConnectorInfo: ...

    async def connector_config(self, name: str) -> Mapping[str, str]: ...

    async def connector_status(self, name: str) -> ConnectorStatus: ...

    async def task_configs(self, name: str) -> list[Mapping[str, str]]: ...

    async def put_config(
        self,
        name: str,
        config: Mapping[str, str],
        *,
        may_exist: bool,
        initial_state: TargetState | None = None,
    ) -> tuple[bool, ConnectorInfo]:
        """Returns whether the connector was created. The settings are validated by it."""
        ...

    async def patch_config(self, name: str, changes: Mapping[str, str | None]) -> ConnectorInfo: ...

    async def delete(self, name: str) -> None: ...

    async def set_target_state(self, name: str, target: TargetState) -> None: ...

    async def restart(
        self, name: str, *, include_tasks: bool, only_failed: bool
    ) -> ConnectorStatus | None:
        """Returns the status with what is being restarted, if tasks were requested."""
        ...

    async def restart_task(self, name: str, task: int) -> None: ...

    async def active_topics(self, name: str) -> list[str]: ...

    async def reset_active_topics(self, name: str) -> None: ...

    async def offsets(self, name: str) -> list[StoredOffset]: ...

    async def alter_offsets(self, name: str, offsets: Sequence[StoredOffset] | None) -> str:
        """Returns the message of the response."""
        ...

    async def set_logger_level(self, logger: str, level: str) -> None:
        """Sets the level on every instance."""
        ...
