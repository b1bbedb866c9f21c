"""The text that Java's `toString` returns for Connect's values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from barnabas.connect.converters import _json_writer
from barnabas.connect.data.schema import java_type_name
from barnabas.connect.errors import DataError
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


def to_text(values: pa.Array) -> pa.StringArray:
    """Returns the texts. Raises DataError for bytes, which have none."""
    import pyarrow as pa

    is_type, arrow_type = pa.types, values.type
    if is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
        return values.cast(pa.string())
    if is_type.is_dictionary(arrow_type):
        return to_text(values.dictionary_decode())
    if is_type.is_integer(arrow_type) or is_type.is_boolean(arrow_type):
        return values.cast(pa.string())
    if is_type.is_null(arrow_type) or is_type.is_decimal(arrow_type):
        return values.cast(pa.string())
    if is_type.is_floating(arrow_type):
        return _real_texts(values)
    write = _writer(arrow_type)
    return pa.array(
        [None if value is None else write(value) for value in values.to_pylist()], pa.string()
    )


def _real_texts(values: pa.Array) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = values.cast(pa.float64()).fill_null(0.0)
    count = len(numbers)
    offsets = pa.allocate_buffer(4 * count + 4)
    cells = view(numbers.buffers()[1], "d")[numbers.offset : numbers.offset + count]
    is_single = not pa.types.is_float64(values.type)
    content = _json_writer.write_reals(cells, is_single, view(offsets, "i"))
    texts = pa.Array.from_buffers(pa.string(), count, [None, offsets, pa.py_buffer(content)])
    return pc.if_else(values.is_valid(), texts, None) if values.null_count else texts


def _writer(arrow_type: pa.DataType) -> Callable[[Any], str]:
    """Returns a function for single values, for nested and rare types."""
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_struct(arrow_type):
        return _struct_writer(arrow_type)
    if is_type.is_map(arrow_type):
        keys, items = (
            _or_null(_writer(arrow_type.key_type)),
            _or_null(_writer(arrow_type.item_type)),
        )
        return lambda entries: (
            "{" + ", ".join(f"{keys(key)}={items(value)}" for key, value in entries) + "}"
        )
    if is_type.is_nested(arrow_type):
        write = _or_null(_writer(arrow_type.value_type))
        return lambda elements: "[" + ", ".join(map(write, elements)) + "]"
    if is_type.is_floating(arrow_type):
        return lambda value: str(_real_texts(pa.array([value], arrow_type))[0].as_py())
    if is_type.is_temporal(arrow_type):
        return _date_text
    if _is_bytes(arrow_type):
        raise DataError(
            f"Values of {java_type_name(arrow_type)} have no text: use ByteArrayConverter."
        )
    return _plain_text


def _struct_writer(arrow_type: pa.StructType) -> Callable[[Mapping[str, Any]], str]:
    """As Connect's Struct, which leaves out nulls."""
    writers = [(field.name, _writer(field.type)) for field in arrow_type]

    def write(value: Mapping[str, Any]) -> str:
        parts = (
            f"{name}={inner(value[name])}" for name, inner in writers if value[name] is not None
        )
        return "Struct{" + ",".join(parts) + "}"

    return write


def _or_null(write: Callable[[Any], str]) -> Callable[[Any], str]:
    return lambda value: "null" if value is None else write(value)


def _plain_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "") if isinstance(value, Decimal) else str(value)


def _date_text(value: date | datetime | time) -> str:
    """As java.util.Date, in UTC."""
    if isinstance(value, time):
        value = datetime.combine(date(1970, 1, 1), value)
    elif not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return value.strftime("%a %b %d %H:%M:%S UTC %Y")


def _is_bytes(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    is_type = pa.types
    return bool(
        is_type.is_binary(arrow_type)
        or is_type.is_large_binary(arrow_type)
        or is_type.is_fixed_size_binary(arrow_type)
    )
