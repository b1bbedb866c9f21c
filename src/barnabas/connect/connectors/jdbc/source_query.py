"""The statements that read new rows, and the positions after them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connector import Position
from barnabas.connect.connectors.jdbc.dialect import Dialect
from barnabas.connect.errors import ConnectError

INCREMENTING = "incrementing"
TIMESTAMP = "timestamp"
TIMESTAMP_NANOS = "timestamp_nanos"


@dataclass(slots=True, frozen=True)
class TimePosition:
    """Where a read begins."""

    incrementing: int
    time_us: int


@dataclass(slots=True, frozen=True)
class SourceQuery:
    """What to read, and which of its columns decide what is new."""

    select: str
    incrementing: str | None
    timestamps: tuple[str, ...]
    suffix: str

    @property
    def is_bulk(self) -> bool:
        return self.incrementing is None and not self.timestamps

    @property
    def is_by_time_only(self) -> bool:
        return self.incrementing is None and bool(self.timestamps)

    def rows(
        self,
        dialect: Dialect,
        literal: Callable[[int], str],
        start: TimePosition,
        end_us: int,
        limit: int | None,
    ) -> str:
        """Returns the statement for new rows in order."""
        order = self._order(dialect)
        text = self.select + self._where(dialect, literal, start, end_us)
        if order:
            text += f" ORDER BY {order}"
        if limit is not None and not self.suffix:
            text += f" LIMIT {limit}"
        return f"{text} {self.suffix}" if self.suffix else text

    def any_row(
        self,
        dialect: Dialect,
        literal: Callable[[int], str],
        start: TimePosition,
        end_us: int,
    ) -> str:
        """Returns a cheap statement that has a row if `rows` has one."""
        matching = self.select + self._where(dialect, literal, start, end_us)
        return f"SELECT 1 AS found FROM ({matching}) AS q LIMIT 1"

    def _where(
        self,
        dialect: Dialect,
        literal: Callable[[int], str],
        start: TimePosition,
        end_us: int,
    ) -> str:
        conditions = []
        incrementing = dialect.quote(self.incrementing) if self.incrementing else None
        if self.timestamps:
            time = _first_time(dialect, self.timestamps)
            after, end = literal(start.time_us), literal(end_us)
            if incrementing is None:
                conditions = [f"{time} > {after}", f"{time} < {end}"]
            else:
                conditions = [
                    f"{time} < {end}",
                    f"(({time} = {after} AND {incrementing} > {start.incrementing}) "
                    f"OR {time} > {after})",
                ]
        elif incrementing is not None:
            conditions = [f"{incrementing} > {start.incrementing}"]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def _order(self, dialect: Dialect) -> str:
        columns = [_first_time(dialect, self.timestamps)] if self.timestamps else []
        if self.incrementing is not None:
            columns.append(dialect.quote(self.incrementing))
        return ",".join(columns) + " ASC" if columns else ""


def _first_time(dialect: Dialect, columns: Sequence[str]) -> str:
    names = ",".join(map(dialect.quote, columns))
    return names if len(columns) == 1 else f"COALESCE({names})"


def start_of(position: Position | None, initial_ms: int | None) -> TimePosition:
    """Returns where to begin: after id -1 and the epoch, if there is no position."""
    position = position or {}
    incrementing = position.get(INCREMENTING)
    time_ms = position.get(TIMESTAMP)
    if time_ms is None:
        time_us = (initial_ms or 0) * 1000
    else:
        nanos = position.get(TIMESTAMP_NANOS)
        time_us = time_ms * 1000
        if nanos is not None:
            time_us = time_ms // 1000 * 1_000_000 + nanos // 1000
    return TimePosition(-1 if incrementing is None else incrementing, time_us)


def time_position(time_us: int) -> dict[str, int]:
    return {TIMESTAMP: time_us // 1000, TIMESTAMP_NANOS: time_us % 1_000_000 * 1000}


@dataclass(slots=True, frozen=True)
class RowPositions:
    """The ids and times of the rows of a batch."""

    incrementing: pa.Array | None
    times_us: pa.Array | None

    def after(self, row: int) -> Position:
        position: dict[str, Any] = {}
        if self.times_us is not None:
            position |= time_position(self.times_us[row].as_py())
        if self.incrementing is not None:
            position[INCREMENTING] = self.incrementing[row].as_py()
        return position

    def start_of_last_group(self) -> int:
        """Returns the first of the rows at the end that share one time."""
        assert self.times_us is not None
        last = self.times_us[-1]
        before = pc.indices_nonzero(pc.not_equal(self.times_us, last))
        return before[-1].as_py() + 1 if len(before) else 0


def column_of(batch: pa.RecordBatch, name: str) -> pa.Array:
    """Returns a column by its name, in any case."""
    for index, found in enumerate(batch.schema.names):
        if found == name:
            return batch.column(index)
    for index, found in enumerate(batch.schema.names):
        if found.lower() == name.lower():
            return batch.column(index)
    raise ConnectError(
        f"The rows have no column '{name}', which decides which rows are new. They have: "
        f"{', '.join(batch.schema.names)}."
    )


def integers_of(values: pa.Array, name: str) -> pa.Array:
    """Returns ids as int64."""
    storage = values.storage if isinstance(values, pa.ExtensionArray) else values
    try:
        if pa.types.is_string(storage.type):  # NUMERIC
            storage = pc.cast(storage, pa.decimal128(38, 0))
        return pc.cast(storage, pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ConnectError(
            f"Column '{name}' is no incrementing column, since it has values that are not "
            f"integers of 64 bits: {error}"
        ) from error
