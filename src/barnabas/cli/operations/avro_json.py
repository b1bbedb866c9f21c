"""JSON values as the values that fastavro writes.

Bytes, decimals, times and NaN are strings in JSON, and fields with defaults can be left out.
"""

import functools
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any

_Names = dict[str, Any]
"""The named types of a schema."""


def from_json(value: Any, schema: Any) -> Any:
    """Converts a JSON value to one that fastavro writes with the schema, in fastavro's form.

    Raises ValueError, with the field and the reason, if it does not match the schema.
    """
    named: _Names = {}
    _collect_names(schema, named)
    return _convert(value, schema, named, "")


def _collect_names(schema: Any, named: _Names) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect_names(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for part in "items", "values", "type":
            _collect_names(schema.get(part), named)
        for field in schema.get("fields", ()):
            _collect_names(field["type"], named)


def _convert(value: Any, schema: Any, named: _Names, path: str) -> Any:
    schema = _resolve(schema, named)
    if isinstance(schema, list):
        return _convert_union(value, schema, named, path)
    if _logical_type(schema) == "decimal" and isinstance(value, int | float):
        value = str(value)
    is_flag = isinstance(value, bool) and _kind(schema) != "boolean"
    is_too_large = isinstance(value, int) and value.bit_length() > _BITS.get(_kind(schema), 1024)
    if is_flag or is_too_large or not isinstance(value, _JSON_TYPES[_kind(schema)]):
        raise ValueError(f"{path or 'the value'}: {value!r} is not of type {_name(schema)}")
    if isinstance(value, str) and (convert := _text_conversion(schema)) is not None:
        try:
            return convert(value)
        except (ValueError, InvalidOperation):
            where = path or "the value"
            raise ValueError(f"{where}: {value!r} is not of type {_name(schema)}") from None
    return _convert_parts(value, schema, named, path)


def _convert_parts(value: Any, schema: Any, named: _Names, path: str) -> Any:
    match _kind(schema):
        case "record" | "error":
            return _convert_record(value, schema, named, path)
        case "array":
            return [
                _convert(item, schema["items"], named, f"{path}[{index}]")
                for index, item in enumerate(value)
            ]
        case "map":
            return {
                key: _convert(item, schema["values"], named, _join(path, key))
                for key, item in value.items()
            }
        case "enum" if value not in schema["symbols"]:
            symbols = ", ".join(schema["symbols"])
            raise ValueError(f"{path or 'the value'}: {value!r} is none of {symbols}")
    return value


def _convert_record(value: Any, schema: Any, named: _Names, path: str) -> dict[str, Any]:
    fields = {field["name"]: field for field in schema["fields"]}
    if unknown := [key for key in value if key not in fields]:
        names = ", ".join(fields)
        raise ValueError(f"{_join(path, unknown[0])}: {_name(schema)} has only the fields {names}")
    converted = {}
    for name, field in fields.items():
        if name not in value and "default" not in field:
            raise ValueError(f"{_join(path, name)} is missing, and has no default")
        converted[name] = (
            _convert(value[name], field["type"], named, _join(path, name))
            if name in value
            else _convert_default(field["default"], field["type"], named)
        )
    return converted


def _convert_default(value: Any, schema: Any, named: _Names) -> Any:
    """Converts a default: that of a union has its first type, and a text of bytes is their code."""
    schema = _resolve(schema, named)
    if isinstance(schema, list):
        return _convert_default(value, schema[0], named)
    match _kind(schema):
        case "bytes" | "fixed":
            return value.encode("latin-1")
        case "record" | "error":
            return {
                field["name"]: _convert_default(
                    value.get(field["name"], field.get("default")), field["type"], named
                )
                for field in schema["fields"]
            }
        case "array":
            return [_convert_default(item, schema["items"], named) for item in value]
        case "map":
            return {
                key: _convert_default(item, schema["values"], named) for key, item in value.items()
            }
    return value


def _convert_union(value: Any, branches: list[Any], named: _Names, path: str) -> Any:
    """Converts to the first branch that the value matches."""
    reasons = []
    for branch in branches:
        try:
            return _convert(value, branch, named, path)
        except ValueError as error:
            reasons.append((_kind(_resolve(branch, named)), str(error)))
    nested = [reason for kind, reason in reasons if isinstance(value, dict) and kind == "record"]
    if len(nested) == 1:
        raise ValueError(nested[0])
    types = " or ".join(_name(_resolve(branch, named)) for branch in branches)
    raise ValueError(f"{path or 'the value'}: {value!r} is not of type {types}")


def _resolve(schema: Any, named: _Names) -> Any:
    """Returns the declaration of a named type, and what a `{"type": ...}` wraps."""
    if isinstance(schema, str):
        return named.get(schema, schema)
    if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
        return _resolve(schema["type"], named)
    return schema


def _kind(schema: Any) -> str:
    return str(schema["type"] if isinstance(schema, dict) else schema)


def _name(schema: Any) -> str:
    if not isinstance(schema, dict):
        return str(schema)
    if _logical_type(schema) == "decimal":
        return f"decimal({schema['precision']}, {schema.get('scale', 0)})"
    return str(schema.get("logicalType") or schema.get("name") or schema["type"])


def _logical_type(schema: Any) -> str:
    return str(schema.get("logicalType", "")) if isinstance(schema, dict) else ""


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


_JSON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "int": (int, str),
    "long": (int, str),
    "float": (int, float, str),
    "double": (int, float, str),
    "bytes": str,
    "string": str,
    "fixed": str,
    "enum": str,
    "array": list,
    "map": dict,
    "record": dict,
    "error": dict,
}
"""The types of JSON values; a text can be a time, a decimal or NaN."""


def _text_conversion(schema: Any) -> Callable[[str], Any] | None:
    """Returns how a text becomes a value of the schema; None if it stays a text."""
    if _logical_type(schema) == "decimal":
        return functools.partial(_decimal, schema["precision"], schema.get("scale", 0))
    if (convert := _LOGICAL_TYPES.get(_logical_type(schema))) is not None:
        return convert
    match _kind(schema):
        case "bytes" | "fixed":
            return lambda text: text.encode("latin-1")
        case "float" | "double":
            return _not_finite
        case "int" | "long":
            return _reject
    return None


def _decimal(precision: int, scale: int, text: str) -> Decimal:
    """The digits are counted before anything computes with them: an exponent can be huge."""
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(f"{text!r} is not a number")
    if number.is_zero():
        return Decimal(0)
    is_too_large = number.adjusted() >= precision - scale
    if is_too_large or int(number.as_tuple().exponent) < -scale:
        raise ValueError(f"{text!r} has too many digits")
    return number


def _not_finite(text: str) -> float:
    if text not in ("NaN", "Infinity", "-Infinity"):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def _reject(text: str) -> Any:
    raise ValueError(f"{text!r} is not a number")


_BITS = {"int": 31, "long": 63}
"""The bits of numbers, without their sign."""

_LOGICAL_TYPES: Mapping[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    "time-millis": time.fromisoformat,
    "time-micros": time.fromisoformat,
    "timestamp-millis": datetime.fromisoformat,
    "timestamp-micros": datetime.fromisoformat,
    "local-timestamp-millis": datetime.fromisoformat,
    "local-timestamp-micros": datetime.fromisoformat,
}
