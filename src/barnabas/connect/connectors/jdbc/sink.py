"""Writes topics to tables, as Confluent's JdbcSinkConnector.

A task writes the records of a micro-batch in one transaction. What each mode promises:

- With `barnabas.exactly.once` (see `positions.py`), a row is written once in every mode, also after
  crashes: the offsets are in the same transaction.
- Without it, records are written again after a crash. `upsert` and `update` with a key, and
  deletes, give the same rows then; `insert` writes rows twice, or fails if there is a constraint.

The rows of a key are written in the order of their records; within a transaction, the last of them
is what other users see. Records that have no row, or whose values do not fit, are reported
(`errors.tolerance`), all others are written.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence

from barnabas.connect.config_def import ConfigDef, ConfigValueInfo
from barnabas.connect.connector import (
    SinkConnector,
    SinkWriter,
    TopicPartition,
    WriteContext,
)
from barnabas.connect.connectors.jdbc.connection_settings import (
    connection_pool,
    database_url,
    dialect_of,
)
from barnabas.connect.connectors.jdbc.database import AccessDeniedError, DatabaseConnection
from barnabas.connect.connectors.jdbc.positions import POSITIONS_TABLE, PositionTable
from barnabas.connect.connectors.jdbc.sink_rows import RowMapping
from barnabas.connect.connectors.jdbc.sink_settings import (
    BATCH_SIZE,
    EXACTLY_ONCE,
    INSERT_MODE,
    MAX_RETRIES,
    RETRY_BACKOFF_MS,
    check_sink_settings,
    sink_config_def,
)
from barnabas.connect.connectors.jdbc.sink_table import TargetTables
from barnabas.connect.connectors.jdbc.sink_writer import JdbcWriter, WriterSettings
from barnabas.connect.errors import ConnectError, InvalidConfigError

log = logging.getLogger(__name__)


class JdbcSink(SinkConnector):
    version = "1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return sink_config_def()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        check_sink_settings(values)
        return values

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        for value in self.validate(config):
            for error in value.errors:
                raise InvalidConfigError(error)
        settings = self.settings
        url = database_url(settings, config)
        self._pool = connection_pool(url, settings)
        self._dialect = dialect_of(url, settings)
        self._positions = PositionTable(self._dialect, self.name)
        self._has_positions: bool | None = settings[EXACTLY_ONCE]
        """Whether the database has the offsets; None until that is known."""
        self._mapping = RowMapping(self.name, settings)
        self._tables = TargetTables(self._dialect, settings)

    # Driver

    def start(self) -> None:
        self._pool.open()
        with self._pool.connection() as connection:
            self._prepare_positions(connection)
            if self._has_positions:
                self._positions.begin_epoch(connection)

    def _prepare_positions(self, connection: DatabaseConnection) -> None:
        wanted = self.settings[EXACTLY_ONCE]
        if wanted is False:
            return
        try:
            self._positions.create(connection)
        except AccessDeniedError as error:
            if wanted:
                raise ConnectError(
                    f"{EXACTLY_ONCE}=true needs a table {POSITIONS_TABLE} that the user may write: "
                    f"{error}"
                ) from error
            log.warning(
                "Connector %s writes at least once, since the user may not create table %s: %s",
                self.name,
                POSITIONS_TABLE,
                error,
            )
            self._has_positions = False
        else:
            self._has_positions = True

    def stop(self) -> None:
        self._pool.close()

    def committed_positions(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, int] | None:
        if not self._has_positions:
            return None
        with self._pool.connection() as connection:
            stored = self._positions.read(connection, partitions)
        return {key: position.offset for key, position in stored.items()}

    def check_offsets(self, offsets: Mapping[TopicPartition, int | None]) -> bool:
        with self._pool.connection() as connection:
            self._prepare_positions(connection)
            if self._has_positions:
                self._positions.alter(connection, offsets)
        return True

    # Tasks

    def open(self, context: WriteContext) -> SinkWriter:
        if context.attempt:
            time.sleep(self.settings[RETRY_BACKOFF_MS] / 1000)
        if self._has_positions is None:
            with self._pool.connection() as connection:
                self._prepare_positions(connection)
        settings = WriterSettings(
            dialect=self._dialect,
            insert_mode=self.settings[INSERT_MODE].lower(),
            batch_size=self.settings[BATCH_SIZE],
            max_retries=self.settings[MAX_RETRIES],
            mapping=self._mapping,
            tables=self._tables,
            positions=self._positions if self._has_positions else None,
        )
        return JdbcWriter(self._pool, settings, context)
