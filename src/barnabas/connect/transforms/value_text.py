"""Values as text: what Kafka's `Values.convertToString` returns, in UTC.

Headers are written like this, and Cast to string.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.converters.java_text import to_text
from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.data.defaults import with_defaults
from barnabas.connect.data.schema import NO_DEFAULT, ConnectSchema, Type
from barnabas.connect.transforms.java_calendar import DAY_MS
from barnabas.connect.transforms.simple_date_format import SimpleDateFormat

if TYPE_CHECKING:
    import pyarrow as pa

DATE: Final = SimpleDateFormat("yyyy-MM-dd")
TIME: Final = SimpleDateFormat("HH:mm:ss.SSS'Z'")
TIMESTAMP: Final = SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def value_texts(values: pa.Array, schema: ConnectSchema | None = None) -> pa.StringArray:
    """Returns the texts; null for null.

    A struct with a schema has its fields that are null, and their defaults.
    """
    import pyarrow as pa

    is_type, arrow_type = pa.types, values.type
    if is_type.is_temporal(arrow_type):
        return _time_texts(as_timestamps(values))
    if is_type.is_binary(arrow_type) or is_type.is_large_binary(arrow_type):
        return _base64(values)
    if is_type.is_nested(arrow_type):
        if schema is not None:
            values = with_defaults(values, replace(schema, default=NO_DEFAULT))
        texts = [
            None if value is None else _embedded(value, arrow_type, schema is not None)
            for value in values.to_pylist()
        ]
        return pa.array(texts, pa.string())
    return to_text(values)


def as_timestamps(values: pa.Array) -> pa.TimestampArray:
    """Returns dates, times and timestamps as milliseconds since 1970, which Java has for them."""
    import pyarrow as pa

    timestamp = pa.timestamp("ms", "UTC")
    if pa.types.is_time(values.type):
        return values.cast(pa.time32("ms")).cast(pa.int32()).cast(pa.int64()).cast(timestamp)
    return values.cast(timestamp, safe=False)


def _time_texts(times: pa.TimestampArray) -> pa.StringArray:
    """Kafka chooses the form by the value: the first day has times only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    milliseconds = times.cast(pa.int64())
    is_time = pc.less(milliseconds, DAY_MS)
    if pc.all(is_time, min_count=0).as_py():
        return TIME.format(times)
    days = pc.divide(milliseconds, DAY_MS)
    is_date = pc.equal(pc.multiply(days, DAY_MS), milliseconds)
    if pc.all(pc.and_(is_date, pc.invert(is_time)), min_count=0).as_py():
        return DATE.format(times)
    dated = pc.if_else(is_date, DATE.format(times), TIMESTAMP.format(times))
    return pc.if_else(is_time, TIME.format(times), dated)


@lru_cache(maxsize=1)
def _json_converter() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, is_key=False)
    return converter


def _base64(values: pa.Array) -> pa.StringArray:
    """JSON has bytes in base64 between quotes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    quoted = _json_converter().from_connect("", ConnectSchema(Type.BYTES), values.cast(pa.binary()))
    return pc.utf8_slice_codeunits(quoted.payloads.cast(pa.string()), 1, -1)


def _embedded(value: Any, arrow_type: pa.DataType, has_schema: bool) -> str:
    """Returns the text of a value in a list, map or struct."""
    import pyarrow as pa

    is_type = pa.types
    if value is None:
        return "null"
    if is_type.is_struct(arrow_type):
        entries = (
            f'"{_escaped(each.name)}":{_embedded(value[each.name], each.type, has_schema)}'
            for each in arrow_type
            if has_schema or value[each.name] is not None
        )
        return "{" + ",".join(entries) + "}"
    if is_type.is_map(arrow_type):
        entries = (
            f"{_embedded(key, arrow_type.key_type, has_schema)}:"
            f"{_embedded(item, arrow_type.item_type, has_schema)}"
            for key, item in value
        )
        return "{" + ",".join(entries) + "}"
    if is_type.is_nested(arrow_type):
        items = (_embedded(item, arrow_type.value_type, has_schema) for item in value)
        return "[" + ",".join(items) + "]"
    text = str(value_texts(pa.array([value], arrow_type))[0].as_py())
    is_quoted = isinstance(value, str | bytes)
    return f'"{_escaped(text)}"' if is_quoted else text


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
