"""The directory of each record below the directory of its topic, as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.object_store import settings as names
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import DataError, InvalidConfigError

Partitioner = Callable[[ConnectBatch], pa.Array]
"""Returns the directory of each record. Raises DataError if the batch has none."""

TimestampOf = Callable[[ConnectBatch], pa.Array]
"""Returns the time of each record in milliseconds (int64)."""

_PATTERN_LETTERS = {"Y": "%Y", "y": "%Y", "M": "%m", "d": "%d", "H": "%H", "m": "%M", "s": "%S"}
_UNSAFE = r"/\.\.(/|$)|\x00"
"""In values that become directories: a record must not choose a file outside of its topic."""
_PATTERN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']")


def partitioner(settings: Mapping[str, Any]) -> Partitioner:
    """Raises ConfigError if settings are missing."""
    delimiter = settings["directory.delim"]
    kind = names.short_name(settings[names.PARTITIONER_CLASS], "partitioner")
    match kind:
        case "default":
            return _by_kafka_partition
        case "field":
            fields = settings[names.PARTITION_FIELDS]
            if not fields:
                raise InvalidConfigError(f"The field partitioner needs {names.PARTITION_FIELDS}.")
            return lambda batch: _by_fields(batch, fields, delimiter)
        case "daily":
            path, duration_ms = "'year'=YYYY/'month'=MM/'day'=dd", names.DAY_MS
        case "hourly":
            path, duration_ms = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH", names.HOUR_MS
        case _:
            path, duration_ms = settings[names.PATH_FORMAT], settings[names.PARTITION_DURATION]
            if not path or duration_ms <= 0:
                raise InvalidConfigError(
                    f"The time partitioner needs {names.PATH_FORMAT} and a positive "
                    f"{names.PARTITION_DURATION}."
                )
    pattern = path_pattern(path.replace("/", delimiter))
    zone = ZoneInfo(settings[names.TIMEZONE] or "UTC")
    timestamp_of = timestamps(settings)
    return lambda batch: _by_time(timestamp_of(batch), duration_ms, pattern, zone)


def timestamps(settings: Mapping[str, Any]) -> TimestampOf:
    match names.short_name(settings[names.TIMESTAMP_EXTRACTOR], "timestampextractor"):
        case "wallclock":
            return _now
        case "record":
            return _record_timestamps
        case _:
            path = settings[names.TIMESTAMP_FIELD].split(".")
            return lambda batch: _field_timestamps(batch, path)


def path_pattern(text: str) -> str:
    """Returns the pattern of Java's formatter as one of `strftime`. Raises ConfigError."""
    parts = []
    end = 0
    for match in _PATTERN.finditer(text):
        if match.start() != end:
            raise InvalidConfigError(
                f"{names.PATH_FORMAT} {text!r} has a quote that is not closed."
            )
        end = match.end()
        quoted, letter = match.group(1), match.group(2)
        if quoted is not None:
            parts.append(quoted.replace("''", "'").replace("%", "%%") or "'")
        elif letter is not None:
            if letter not in _PATTERN_LETTERS:
                raise InvalidConfigError(
                    f"{names.PATH_FORMAT} {text!r} has the letter {letter}; there are "
                    f"{', '.join(_PATTERN_LETTERS)}, and text in quotes."
                )
            parts.append(_PATTERN_LETTERS[letter])
        else:
            parts.append(match.group().replace("%", "%%"))
    if end != len(text):
        raise InvalidConfigError(f"{names.PATH_FORMAT} {text!r} has a quote that is not closed.")
    return "".join(parts)


def _by_kafka_partition(batch: ConnectBatch) -> pa.Array:
    return pc.binary_join_element_wise("partition", batch.partition.cast(pa.string()), "=")


def _by_fields(batch: ConnectBatch, fields: list[str], delimiter: str) -> pa.Array:
    parts: list[Any] = []
    for field in fields:
        column = _field(batch, field.split("."))
        if not (
            pa.types.is_integer(column.type)
            or pa.types.is_string(column.type)
            or pa.types.is_boolean(column.type)
        ):
            raise DataError(
                f"Field {field} is of type {column.type}; a directory can be made of integers, "
                f"strings and booleans."
            )
        values = column.cast(pa.string()).fill_null("null")
        if pc.any(pc.match_substring_regex(values, _UNSAFE)).as_py():
            raise DataError(
                f"Field {field} of a record has a value that leads to another directory: .. or a "
                f"zero byte."
            )
        parts.append(pc.binary_join_element_wise(field, values, "="))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, delimiter)


def _by_time(times_ms: pa.Array, duration_ms: int, pattern: str, zone: ZoneInfo) -> pa.Array:
    """Directories are made of the few different times, not of each record."""
    encoded = times_ms.dictionary_encode()
    if len(encoded.dictionary) > 1000:
        # Times of the same minute have the same directory, unless the duration is shorter.
        step_ms = min(duration_ms, 60_000)
        floored = pc.multiply(pc.divide(times_ms, step_ms), step_ms)
        encoded = floored.dictionary_encode()
    paths = [
        _local_floor(time_ms, duration_ms, zone).strftime(pattern)
        for time_ms in encoded.dictionary.to_pylist()
    ]
    return pa.array(paths, pa.string()).take(encoded.indices)


def _local_floor(time_ms: int, duration_ms: int, zone: ZoneInfo) -> datetime:
    """Returns the start of the duration that has the time, on the clocks of the time zone."""
    instant = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=time_ms)
    offset = instant.astimezone(zone).utcoffset() or timedelta()
    local_ms = time_ms + round(offset.total_seconds() * 1000)
    start_ms = local_ms - local_ms % duration_ms
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=start_ms)


def _now(batch: ConnectBatch) -> pa.Array:
    now_ms = int(datetime.now(UTC).timestamp() * 1000)
    return pa.repeat(pa.scalar(now_ms, pa.int64()), len(batch))


def _record_timestamps(batch: ConnectBatch) -> pa.Array:
    times = batch.timestamp.cast(pa.int64())
    if times.null_count:
        raise DataError("A record has no timestamp, and timestamp.extractor is Record.")
    return times


def _field_timestamps(batch: ConnectBatch, path: list[str]) -> pa.Array:
    column = _field(batch, path)
    name = ".".join(path)
    if column.null_count:
        raise DataError(f"Field {name} of a record is null, and its directory depends on it.")
    if pa.types.is_timestamp(column.type):
        return column.cast(pa.timestamp("ms", column.type.tz)).cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_string(column.type):
        return _text_timestamps(column, name)
    raise DataError(
        f"Field {name} is of type {column.type}; the time of a record can be an integer, a "
        f"timestamp, or text."
    )


def _text_timestamps(column: pa.Array, name: str) -> pa.Array:
    """Numbers are milliseconds; everything else is a date and time of ISO 8601."""
    if pc.all(pc.match_substring_regex(column, r"^-?[0-9]+$")).as_py():
        return column.cast(pa.int64())
    encoded = column.dictionary_encode()
    times = []
    for text in encoded.dictionary.to_pylist():
        try:
            parsed = datetime.fromisoformat(text)
        except ValueError:
            raise DataError(
                f"Field {name} is {text!r}, which is no date and time of ISO 8601, and no number."
            ) from None
        moment = parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)
        times.append(int(moment.timestamp() * 1000))
    return pa.array(times, pa.int64()).take(encoded.indices)


def _field(batch: ConnectBatch, path: list[str]) -> pa.Array:
    column = batch.value
    for name in path:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            shown = ".".join(path)
            raise DataError(f"The value has no field {shown}, of which its directory is made.")
        column = pc.struct_field(column, name)
    return column
