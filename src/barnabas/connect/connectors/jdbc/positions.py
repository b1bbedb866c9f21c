"""The table with the offsets of the records whose rows the database has.

A writer reads the offsets when it opens, and changes them in the transaction with its rows, if
nobody else has changed them in between. So a row is written once, whichever writers run at the
same time, and whatever became known of a commit. A connector that starts changes the epoch: writers
of an older run that are still open cannot commit then.

The name of a connector identifies its offsets, so connectors of several clusters that write to one
database need different names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.connect.connector import TopicPartition
from barnabas.connect.connectors.jdbc.database import (
    AccessDeniedError,
    DatabaseConnection,
    DatabaseError,
    RowValueError,
)
from barnabas.connect.connectors.jdbc.dialect import Dialect, TableId, string_literal
from barnabas.connect.errors import ConnectError

POSITIONS_TABLE = "barnabas_connect_positions"


class WriterFencedError(ConnectError):
    """Another writer has written the same records, or the connector runs elsewhere now."""


@dataclass(slots=True, frozen=True)
class StoredPosition:
    offset: int
    """The next offset to write."""
    epoch: int


class PositionTable:
    def __init__(self, dialect: Dialect, connector: str) -> None:
        self._name = dialect.qualified(TableId(None, POSITIONS_TABLE))
        self._table = TableId(None, POSITIONS_TABLE)
        self._dialect = dialect
        self._connector = string_literal(connector)

    def exists(self, connection: DatabaseConnection) -> bool:
        return self._dialect.find_table(connection, self._table) is not None

    def create(self, connection: DatabaseConnection) -> None:
        """Raises AccessDeniedError if the user may not create or write it."""
        if not self.exists(connection):
            try:
                connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {self._name} (connector VARCHAR(255) NOT NULL, "
                    "topic VARCHAR(249) NOT NULL, kafka_partition INTEGER NOT NULL, "
                    "kafka_offset BIGINT NOT NULL, epoch BIGINT NOT NULL, "
                    "PRIMARY KEY (connector, topic, kafka_partition))"
                )
            except (RowValueError, DatabaseError) as error:
                if isinstance(error, AccessDeniedError) or not self.exists(connection):
                    raise
        connection.execute(f"UPDATE {self._name} SET epoch = epoch WHERE connector IS NULL")

    def begin_epoch(self, connection: DatabaseConnection) -> None:
        connection.execute(
            f"UPDATE {self._name} SET epoch = epoch + 1 WHERE connector = {self._connector}"
        )

    def read(
        self, connection: DatabaseConnection, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, StoredPosition]:
        wanted = set(partitions)
        rows = connection.rows(
            f"SELECT topic, kafka_partition, kafka_offset, epoch FROM {self._name} "
            f"WHERE connector = {self._connector}"
        )
        stored = {
            (row["topic"], row["kafka_partition"]): StoredPosition(
                row["kafka_offset"], row["epoch"]
            )
            for row in rows
        }
        return {key: position for key, position in stored.items() if key in wanted}

    def advance(
        self,
        connection: DatabaseConnection,
        read: Mapping[TopicPartition, StoredPosition],
        offsets: Mapping[TopicPartition, int],
    ) -> None:
        """Stores offsets in the transaction that is open. Raises WriterFencedError."""
        for key, offset in offsets.items():
            position = read.get(key)
            if position is None:
                self._insert(connection, key, offset)
            elif not connection.rows(
                f"UPDATE {self._name} SET kafka_offset = {offset} WHERE {self._is(key)} "
                f"AND kafka_offset = {position.offset} AND epoch = {position.epoch} "
                "RETURNING kafka_offset"
            ):
                raise _fenced(key)

    def _insert(self, connection: DatabaseConnection, key: TopicPartition, offset: int) -> None:
        topic, partition = key
        try:
            connection.execute(
                f"INSERT INTO {self._name} VALUES "
                f"({self._connector}, {string_literal(topic)}, {partition}, {offset}, 0)"
            )
        except RowValueError as error:
            raise _fenced(key) from error

    def alter(
        self, connection: DatabaseConnection, offsets: Mapping[TopicPartition, int | None]
    ) -> None:
        """Stores the offsets that an operator has chosen; None forgets a partition's."""
        with connection.transaction(self._dialect.begin_write):
            self.begin_epoch(connection)
            for key, offset in offsets.items():
                connection.execute(f"DELETE FROM {self._name} WHERE {self._is(key)}")
                if offset is not None:
                    self._insert(connection, key, offset)

    def _is(self, key: TopicPartition) -> str:
        topic, partition = key
        return (
            f"connector = {self._connector} AND topic = {string_literal(topic)} "
            f"AND kafka_partition = {partition}"
        )


def first_to_write(
    ranges: Mapping[TopicPartition, tuple[int, int]],
    stored: Mapping[TopicPartition, StoredPosition],
) -> dict[TopicPartition, int]:
    """Returns the offset before which the records of each range are written already.

    Raises WriterFencedError if another writer is past the end of a range.
    """
    first = {}
    for key, (start, end) in ranges.items():
        position = stored.get(key)
        if position is not None and position.offset > end:
            raise _fenced(key)
        first[key] = start if position is None else max(start, position.offset)
    return first


def _fenced(key: TopicPartition) -> WriterFencedError:
    topic, partition = key
    return WriterFencedError(
        f"Records of {topic}-{partition} were written by another writer of the connector, or it "
        "was started again: this write is undone."
    )
