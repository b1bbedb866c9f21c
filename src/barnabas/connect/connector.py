"""The classes that a connector extends.

One class runs in two kinds of processes. The driver plans and commits; tasks on Spark's
executors read and write. Both create the connector and call `configure`, so keep what only one of
them needs, such as connections, out of it: `start` is called in the driver only.

A source has partitions (tables, files), each with a position. The framework stores positions with
the rows, in one transaction if the worker writes exactly once, and passes them back to `read`.

A sink gets the records of topic partitions in order. The framework commits their offsets once
`SinkConnector.commit` has returned, so a sink that fails before that gets them again. A sink that
keeps the positions with its data returns them from `committed_positions`, and is exactly once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from barnabas.connect.config_def import ConfigDef, ConfigValueInfo
from barnabas.connect.data.batch import ConnectBatch

if TYPE_CHECKING:
    from barnabas.connect.reporter import ErrorReporter

Partition = Mapping[str, Any]
"""What positions are stored for, such as {"filename": "/var/log/messages"}: JSON primitives."""

Position = Mapping[str, Any]
"""How far a partition was read, such as {"position": 4711}: JSON primitives."""

TopicPartition = tuple[str, int]


def path_segment(name: str) -> str:
    """Returns the name of a connector as one segment of a path: it may have slashes, or be `..`."""
    segment = quote(name, safe=" ")
    return segment.replace(".", "%2E") if segment in (".", "..") else segment


class Connector(ABC):
    """What sources and sinks have in common."""

    version: ClassVar[str | None] = None
    """The version that the REST API shows."""

    name: str
    """The name of the connector, set by `configure`."""
    settings: Mapping[str, Any]
    """The parsed settings of `config_def`, with defaults, set by `configure`."""
    originals: Mapping[str, str]
    """All settings as they were given, set by `configure`."""

    @classmethod
    @abstractmethod
    def config_def(cls) -> ConfigDef:
        """Returns the settings of the connector, without those that all connectors have."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        """Returns each setting with its value and errors.

        Override it for rules between settings, or to test a connection. Begin with the result of
        `super().validate(config)` and add errors to its values.
        """
        return cls.config_def().validate(config)

    def configure(self, config: Mapping[str, str]) -> None:
        """Called once, in each process, before everything else."""
        self.originals = dict(config)
        self.name = config.get("name", "")
        self.settings = self.config_def().parse(config)

    def start(self) -> None:  # noqa: B027 - most connectors need nothing
        """Called in the driver before it plans. Raises if the connector cannot run."""

    def stop(self) -> None:  # noqa: B027 - most connectors need nothing
        """Called in the driver when the connector is paused, stopped, moved or has failed."""


# Sources


@dataclass(slots=True, frozen=True)
class SourceBatch:
    """Rows of a partition, and its position after them."""

    records: ConnectBatch
    position: Position
    positions: Mapping[int, Position] = field(default_factory=dict)
    """Positions after some of the rows, by index, where the batch may be cut."""


class SourceConnector(Connector):
    """Reads something into topics."""

    poll_interval_ms: int = 1000
    """How long to wait after a read that found nothing, or `has_new` that was false."""

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """Returns what can be read independently. Called in the driver, from time to time."""

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        """Returns whether a read would find rows, cheaply. Called in the driver, in a thread."""
        return True

    @abstractmethod
    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        """Yields rows after the position, up to about `max_rows`, and ends when there are no more.

        Called in a task, in a process of its own, and possibly again with the same position.
        """

    def commit(self, positions: Sequence[tuple[Partition, Position]]) -> None:
        """Called in the driver after the positions were committed, to release what was read."""

    def check_offsets(self, offsets: Sequence[tuple[Partition, Position | None]]) -> bool:
        """Called before an operator changes positions; a position of None resets its partition.

        Returns whether they are all of this connector's state. Raises ConnectError if one is
        invalid.
        """
        return True


# Sinks


@dataclass(slots=True, frozen=True)
class AvailableRecords:
    """What of a topic partition is not written yet."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int
    waiting_ms: int
    """For how long there have been records that are not written."""


@dataclass(slots=True, frozen=True)
class WriteContext:
    """What a sink writer is opened for."""

    connector_name: str
    task: int
    attempt: int
    ranges: Mapping[TopicPartition, tuple[int, int]]
    """The offsets to write, from the first to before the second."""
    reporter: ErrorReporter
    """Takes records that cannot be written, if the connector tolerates them."""


@dataclass(slots=True, frozen=True)
class WriteReport:
    """What a writer has done. It is pickled and passed to `SinkConnector.commit`."""

    positions: Mapping[TopicPartition, int]
    """The next offset of each partition; at most the end of the range."""
    details: Any = None
    """What `commit` needs, such as the names of files."""


class SinkWriter(ABC):
    """Writes the records of one task of one micro-batch."""

    def first_offsets(self) -> Mapping[TopicPartition, int]:
        """Returns where the records begin that were not written before, by an attempt whose report
        was lost. Called once, before `write`, which does not get the records before these."""
        return {}

    @abstractmethod
    def write(self, batch: ConnectBatch) -> None:
        """Takes records, those of a partition in order. Raises RetriableError if the target is
        down: the framework aborts, and repeats everything from the start."""

    @abstractmethod
    def close(self) -> WriteReport:
        """Makes everything durable, or ready for `SinkConnector.commit`."""

    def abort(self) -> None:  # noqa: B027 - most writers need nothing
        """Called instead of `close` after an error."""


class SinkConnector(Connector):
    """Writes topics to something."""

    def committed_positions(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int] | None:
        """Returns positions that are kept with the data.

        The group's offsets are used for partitions without one, and for all if it returns None.

        Called in the driver, after `start`, and when partitions are added.
        """
        return None

    def end_of_next_write(self, available: AvailableRecords) -> int:
        """Returns the offset to write to. `start_offset` means to wait for more records."""
        return available.end_offset

    @abstractmethod
    def open(self, context: WriteContext) -> SinkWriter:
        """Called in a task."""

    def commit(self, reports: Sequence[WriteReport]) -> None:
        """Called in the driver when all tasks of a micro-batch have closed their writers."""

    def check_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        """Called before an operator changes offsets; see `SourceConnector.check_offsets`."""
        return True
