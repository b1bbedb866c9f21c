"""What a connector's run needs of sinks and sources, and what both need of the engine."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from barnabas.connect.execution.blocking import BlockingCalls
from barnabas.connect.execution.log_ends import LogEnds
from barnabas.connect.execution.task_states import TaskStates
from barnabas.spark.runtime.work import WorkItem, WorkReport

if TYPE_CHECKING:
    from barnabas.connect.connector import Connector, Partition, Position


class WorkerSettings(Protocol):
    """What the engine needs of `WorkerConfig`."""

    @property
    def originals(self) -> Mapping[str, str]: ...
    @property
    def exactly_once(self) -> bool: ...
    @property
    def group_id(self) -> str: ...
    @property
    def client(self) -> Callable[..., dict[str, str]]: ...


class SourcePositionStore(Protocol):
    """What the engine needs of `OffsetTopic`."""

    @property
    def topic(self) -> str: ...
    async def read_to_end(self) -> None: ...
    def offsets(self, connector: str) -> list[tuple[Partition, Position]]: ...
    def offset(self, connector: str, partition: Partition) -> Position | None: ...
    def record(
        self, connector: str, partition: Partition, offset: Position | None
    ) -> tuple[bytes, bytes | None]: ...
    async def write(
        self, connector: str, offsets: Sequence[tuple[Partition, Position | None]]
    ) -> None: ...


@dataclass(slots=True, frozen=True)
class EngineServices:
    """What all connectors of the engine share."""

    worker: WorkerSettings
    positions: SourcePositionStore
    blocking: BlockingCalls
    log_ends: LogEnds
    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Unique for each engine."""


@dataclass(slots=True, frozen=True)
class RunContext:
    """What one connector's run passes to its work."""

    name: str
    config: Mapping[str, str]
    connector: type[Connector]
    services: EngineServices
    states: TaskStates
    on_work: Callable[[], None]
    """There is something to plan."""
    on_tasks: Callable[[int], None]
    """The connector has another number of tasks."""
    on_topic: Callable[[str], None]
    """Records of a topic were read or written."""
    on_task_error: Callable[[int, Exception], None]
    """A task has failed in the driver."""


class ConnectorWork(Protocol):
    """A connector between one start and its stop. All methods are called in the event loop."""

    async def start(self) -> None:
        """Fences earlier instances, and finds out from where to go on."""

    async def poll(self) -> None:
        """Looks for something to do, until it is cancelled or the connector has failed."""

    def plan(self) -> list[WorkItem]:
        """Returns items of tasks that may run. Items of an earlier plan are reported or lost."""

    async def commit(self, reports: Sequence[WorkReport]) -> None:
        """Commits what items have done. After an error, `recover` follows."""

    async def recover(self) -> None:
        """Finds out what was committed, after an error of `commit` or lost items."""

    def on_lost(self) -> bool:
        """Items were lost. Returns whether `recover` has to follow."""

    async def stop(self) -> None:
        """Releases everything. It may be called after any error."""
