"""The object store sinks.

Each record is in one file, also after failures: positions are kept beside the files
(`positions.py`). Records of a topic partition are written when there are `flush.size` of them, or
after the time of `rotate.interval.ms` or `rotate.schedule.interval.ms`. So no file stays open, and
no record is read twice only because it waits for others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from barnabas.connect.config_def import ConfigDef, ConfigValueInfo
from barnabas.connect.connector import (
    AvailableRecords,
    SinkConnector,
    SinkWriter,
    TopicPartition,
    WriteContext,
    WriteReport,
)
from barnabas.connect.connectors.object_store import settings as names
from barnabas.connect.connectors.object_store.formats import file_format
from barnabas.connect.connectors.object_store.partitioners import partitioner, timestamps
from barnabas.connect.connectors.object_store.positions import PendingFiles, PositionStore
from barnabas.connect.connectors.object_store.stores import ObjectStore, open_store
from barnabas.connect.connectors.object_store.writer import ObjectStoreWriter
from barnabas.connect.errors import InvalidConfigError

log = logging.getLogger("barnabas.connect")

MAX_OFFSETS = 500_000
"""How many offsets of a topic partition are written at a time, if flush.size is not larger."""


class ObjectStoreSink(SinkConnector):
    """Writes to the directory or bucket of `store.url`."""

    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return names.LOCAL + names.COMMON + names.S3_ACCESS + _REGION

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        by_name = {value.name: value for value in values}
        if any(value.errors for value in values):
            return values
        settings = {value.name: value.value for value in values}
        try:
            partitioner(settings)
        except InvalidConfigError as error:
            by_name[names.PARTITIONER_CLASS].errors.append(str(error))
        if settings[names.ROTATE_INTERVAL] > 0 and not _is_by_time(settings):
            by_name[names.ROTATE_INTERVAL].errors.append(
                f"{names.ROTATE_INTERVAL} needs a partitioner by time; set "
                f"{names.ROTATE_SCHEDULE} for others."
            )
        return values

    def start(self) -> None:
        """Raises if the store cannot be reached."""
        self._committed = self._positions().read() or {}

    def committed_positions(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int] | None:
        """Called at the start and after failures: removes what was not committed."""
        stored = self._positions()
        removed = stored.remove_uncommitted()
        if removed:
            log.info("%s: removed %d files that were not committed", self.name, len(removed))
        positions = stored.read()
        if positions is None:
            return None
        self._committed = positions
        return {key: positions[key] for key in partitions if key in positions}

    def end_of_next_write(self, available: AvailableRecords) -> int:
        flush_size: int = self.settings[names.FLUSH_SIZE]
        count = available.end_offset - available.start_offset
        if count >= flush_size:
            files = max(1, min(count, MAX_OFFSETS) // flush_size)
            return available.start_offset + files * flush_size
        waits = (self.settings[names.ROTATE_INTERVAL], self.settings[names.ROTATE_SCHEDULE])
        shortest_ms = min((each for each in waits if each > 0), default=None)
        is_due = shortest_ms is not None and available.waiting_ms >= shortest_ms
        return available.end_offset if is_due else available.start_offset

    def open(self, context: WriteContext) -> SinkWriter:
        settings = self.settings
        rotates = settings[names.ROTATE_INTERVAL] > 0 and _is_by_time(settings)
        return ObjectStoreWriter(
            context,
            settings,
            self._store(),
            file_format(settings),
            partitioner(settings),
            timestamps(settings) if rotates else None,
        )

    def commit(self, reports: Sequence[WriteReport]) -> None:
        stored = self._positions()
        self._committed = {**self._committed}
        for report in reports:
            self._committed |= report.positions
        stored.write(self._committed)
        pending = [report.details for report in reports]
        stored.remove_pending(each for each in pending if isinstance(each, PendingFiles))

    def check_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        self._positions().update(offsets)
        return True

    def _positions(self) -> PositionStore:
        return PositionStore(self._store(), self.settings["topics.dir"], self.name)

    def _store(self) -> ObjectStore:
        if self._opened is None:
            self._opened = open_store(self.settings)
        return self._opened

    _opened: ObjectStore | None = None
    _committed: Mapping[TopicPartition, int] = {}


class S3Sink(ObjectStoreSink):
    """Writes to the bucket of `s3.bucket.name`, with the settings of Confluent's S3 sink."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return names.S3 + names.COMMON + names.S3_ACCESS


_REGION = ConfigDef(names.S3["s3.region"])


def _is_by_time(settings: Mapping[str, object]) -> bool:
    kind = names.short_name(str(settings[names.PARTITIONER_CLASS]), "partitioner")
    return kind in ("time", "daily", "hourly")
