"""Dates and times as messages of year, month and day, or hours, minutes, seconds and nanos.

They are `google.type.Date` and `google.type.TimeOfDay`, which Protobuf schemas use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

_DATE_PARTS = ["year", "month", "day"]
_TIME_PARTS = ["hours", "minutes", "seconds", "nanos"]


def is_date_parts(arrow_type: pa.StructType) -> bool:
    return [field.name for field in arrow_type] == _DATE_PARTS


def is_time_parts(arrow_type: pa.StructType) -> bool:
    return [field.name for field in arrow_type] == _TIME_PARTS


def date_from_parts(values: pa.StructArray) -> pa.Date32Array:
    """Returns the dates of the Gregorian calendar, from the year 1 on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    year, month, day = (values.field(index).cast(pa.int64()) for index in range(3))
    # Years that begin in March have the leap day at their end.
    is_early = pc.less_equal(month, 2)
    year = pc.subtract(year, is_early.cast(pa.int64()))
    month = pc.add(month, pc.if_else(is_early, 9, -3))
    era = pc.divide(year, 400)
    year_of_era = pc.subtract(year, pc.multiply(era, 400))
    day_of_year = pc.add(pc.divide(pc.add(pc.multiply(month, 153), 2), 5), pc.subtract(day, 1))
    leap_days = pc.subtract(pc.divide(year_of_era, 4), pc.divide(year_of_era, 100))
    day_of_era = pc.add(pc.add(pc.multiply(year_of_era, 365), leap_days), day_of_year)
    days = pc.add(pc.subtract(pc.multiply(era, 146_097), 719_468), day_of_era)
    return _masked(values, days.cast(pa.int32()).cast(pa.date32()))


def parts_of_date(values: pa.Date32Array) -> pa.StructArray:
    import pyarrow.compute as pc

    return _struct(values, [pc.year(values), pc.month(values), pc.day(values)], _DATE_PARTS)


def time_from_parts(values: pa.StructArray) -> pa.Time32Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    hours, minutes, seconds, nanos = (values.field(index).cast(pa.int64()) for index in range(4))
    whole = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    milliseconds = pc.add(pc.multiply(whole, 1000), pc.divide(nanos, 1_000_000))
    return _masked(values, milliseconds.cast(pa.int32()).cast(pa.time32("ms")))


def parts_of_time(values: pa.Time32Array) -> pa.StructArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    milliseconds = values.cast(pa.time32("ms"))
    nanos = pc.multiply(pc.millisecond(milliseconds), 1_000_000)
    parts = [pc.hour(milliseconds), pc.minute(milliseconds), pc.second(milliseconds), nanos]
    return _struct(values, parts, _TIME_PARTS)


def _masked(values: pa.Array, converted: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.if_else(values.is_valid(), converted, None) if values.null_count else converted


def _struct(values: pa.Array, parts: list[pa.Array], names: list[str]) -> pa.StructArray:
    import pyarrow as pa

    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(parts, names, mask=mask)
