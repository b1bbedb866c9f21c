"""Values of one type as another, as Kafka's Cast converts them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from barnabas.connect.data.schema import ConnectSchema, Type, java_type_name
from barnabas.connect.errors import DataError
from barnabas.connect.transforms.columns import Failures
from barnabas.connect.transforms.value_text import value_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

TARGETS: Final = (
    Type.INT8,
    Type.INT16,
    Type.INT32,
    Type.INT64,
    Type.FLOAT32,
    Type.FLOAT64,
    Type.BOOLEAN,
    Type.STRING,
)
_SOURCES: Final = (*TARGETS, Type.BYTES)

_BITS: Final = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def names_of(types: tuple[Type, ...]) -> str:
    return f"[{', '.join(each.name for each in types)}]"


SOURCE_NAMES: Final = names_of(_SOURCES)


def cast_values(
    values: pa.Array, schema: ConnectSchema | None, target: Type, failures: Failures
) -> pa.Array:
    """Returns the values in the Arrow type of `target`, null for rows that failed."""
    import pyarrow as pa

    result_type = ConnectSchema(target).arrow_type()
    error = _unsupported(values.type, schema, target)
    if error is not None:
        if values.null_count < len(values):
            failures.add_all(values.is_valid(), error)
        return pa.nulls(len(values), result_type)
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), result_type)
    if target is Type.STRING:
        return value_texts(values)
    if pa.types.is_temporal(values.type):
        is_timestamp = pa.types.is_timestamp(values.type)
        values = values.cast(pa.int64() if is_timestamp else pa.int32())
    if _is_text(values.type):
        return _from_texts(values.cast(pa.string()), target, failures)
    if target is Type.BOOLEAN:
        return _to_booleans(values)
    if target in _BITS:
        return _to_integers(values, target)
    if pa.types.is_decimal(values.type):
        return values.cast(pa.string()).cast(result_type)
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return values.cast(result_type, safe=False)


def _unsupported(
    arrow_type: pa.DataType, schema: ConnectSchema | None, target: Type
) -> DataError | None:
    import pyarrow as pa

    is_type = pa.types
    if schema is not None and schema.type not in _SOURCES:
        return DataError(
            f"Cast transformation does not support casting from {schema.type.name}; "
            f"supported types are {SOURCE_NAMES}"
        )
    if schema is None and is_type.is_nested(arrow_type):
        is_map = is_type.is_struct(arrow_type) or is_type.is_map(arrow_type)
        return DataError(
            f"Cast transformation does not support casting from {'MAP' if is_map else 'ARRAY'}; "
            f"supported types are {SOURCE_NAMES}"
        )
    if schema is None and (is_type.is_temporal(arrow_type) or is_type.is_decimal(arrow_type)):
        return DataError(
            f"Cast transformation was passed a value of type {java_type_name(arrow_type)} which "
            "is not supported by Connect's data API"
        )
    if target is not Type.STRING and _is_bytes(arrow_type):
        return DataError("Unexpected type in Cast transformation: class [B")
    return None


def _to_booleans(values: pa.Array) -> pa.BooleanArray:
    """Java takes the integer part of a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_boolean(values.type):
        return values
    if not pa.types.is_integer(values.type):
        values = _to_integers(values, Type.INT64)
    return pc.not_equal(values, pa.scalar(0, values.type))


def _to_integers(values: pa.Array, target: Type) -> pa.Array:
    """Integers wrap. Fractions are cut off; a real that is too large becomes the nearest one."""
    import pyarrow as pa

    result_type = ConnectSchema(target).arrow_type()
    if pa.types.is_boolean(values.type):
        return values.cast(result_type)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.int64(), safe=False)
    elif pa.types.is_floating(values.type):
        values = _saturated(values, 64 if target is Type.INT64 else 32)
    return values.cast(result_type, safe=False)


def _saturated(values: pa.Array, bits: int) -> pa.Int64Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    reals = pc.trunc(values.cast(pa.float64()))
    limit = float(1 << (bits - 1))
    is_small, is_large = pc.less(reals, -limit), pc.greater_equal(reals, limit)
    is_outside = pc.or_(pc.is_nan(reals), pc.or_(is_small, is_large))
    if not pc.any(is_outside, min_count=0).as_py():
        return reals.cast(pa.int64())
    integers = pc.if_else(is_outside, 0.0, reals).cast(pa.int64())
    integers = pc.if_else(is_small, -(1 << (bits - 1)), integers)
    return pc.if_else(is_large, (1 << (bits - 1)) - 1, integers)


# Texts


_INTEGER: Final = r"^[+-]?[0-9]+$"
_REAL: Final = r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_JAVA_REAL: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?"
    r"|(?P<named>[+-]?(?:NaN|Infinity))"
    r"|(?P<hex>[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?"
)
_JAVA_BLANKS: Final = "".join(map(chr, range(33)))
"""What Java's `trim` removes."""


def _from_texts(texts: pa.StringArray, target: Type, failures: Failures) -> pa.Array:
    import pyarrow.compute as pc

    if target is Type.BOOLEAN:
        return pc.equal(pc.utf8_lower(texts), "true")
    if target in _BITS:
        return _parsed(texts, target, _INTEGER, _java_integer, failures)
    return _parsed(texts, target, _REAL, _java_real, failures)


def _parsed(
    texts: pa.StringArray,
    target: Type,
    expression: str,
    normalize: Callable[[str, Type], str | None],
    failures: Failures,
) -> pa.Array:
    """Has Arrow parse the texts, after `normalize` if there are some that it does not know."""
    import pyarrow as pa
    import pyarrow.compute as pc

    result_type = ConnectSchema(target).arrow_type()
    if pc.all(pc.match_substring_regex(texts, expression), min_count=0).as_py():
        try:
            return _without_plus(texts).cast(result_type)
        except pa.ArrowInvalid:
            pass
    normalized: list[str | None] = []
    for row, text in enumerate(texts.to_pylist()):
        number = None if text is None else normalize(text, target)
        if text is not None and number is None:
            message = f"Value ({text}) was out of range for requested data type"
            failures.add(row, DataError(message))
        normalized.append(number)
    return pa.array(normalized, pa.string()).cast(result_type)


def _without_plus(texts: pa.StringArray) -> pa.StringArray:
    import pyarrow.compute as pc

    has_plus = pc.starts_with(texts, "+")
    if not pc.any(has_plus, min_count=0).as_py():
        return texts
    return pc.if_else(has_plus, pc.utf8_slice_codeunits(texts, 1), texts)


def _java_integer(text: str, target: Type) -> str | None:
    """Returns a text that Arrow parses, or None if Java does not parse the text."""
    if not re.fullmatch(r"[+-]?\d+", text) or len(text) > 4000:
        return None
    value, limit = int(text), 1 << (_BITS[target] - 1)
    return str(value) if -limit <= value < limit else None


def _java_real(text: str, target: Type) -> str | None:
    match = _JAVA_REAL.fullmatch(text.strip(_JAVA_BLANKS))
    if match is None:
        return None
    if match["named"]:
        return match["named"].replace("Infinity", "inf").replace("+", "").replace("-NaN", "NaN")
    if match["hex"]:
        try:
            return repr(float.fromhex(match["hex"]))
        except OverflowError:
            return "-inf" if text.strip().startswith("-") else "inf"
    return match["number"].removeprefix("+")


def _is_text(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type))


def _is_bytes(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    )
