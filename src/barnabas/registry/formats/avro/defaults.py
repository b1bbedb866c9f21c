"""Whether the defaults of a schema's fields are values of their types."""

from collections.abc import Collection

from barnabas.registry.formats import SchemaError, json_text
from barnabas.registry.formats.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Field,
    Fixed,
    Map,
    Record,
    Union,
)
from barnabas.registry.formats.bounds import Bounds


def check(schema: AvroType, unchecked: Collection[str]) -> None:
    """SchemaError that names the first field whose default is wrong, records of `unchecked` aside.

    A default of a union may be of any of its branches, as Avro has it since 1.12.
    """
    bounds = Bounds("check its defaults")
    for owner, field in _fields(schema, unchecked, bounds):
        if field.default is not MISSING and not _fits(field.default, field.type, bounds):
            raise SchemaError(
                f"Invalid default for the field {owner.name.full}.{field.name}:"
                f" {json_text.write(field.default)} is no {_called(field.type)}"
            )


def _fields(
    schema: AvroType, unchecked: Collection[str], bounds: Bounds
) -> list[tuple[Record, Field]]:
    found: list[tuple[Record, Field]] = []
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        current = waiting.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        bounds.step()
        match current:
            case Array():
                waiting.append(current.items)
            case Map():
                waiting.append(current.values)
            case Union():
                waiting.extend(current.branches)
            case Record() if current.name.full not in unchecked:
                found.extend((current, field) for field in current.fields)
                waiting.extend(field.type for field in current.fields)
    return found


def _fits(value: object, schema: AvroType, bounds: Bounds) -> bool:
    with bounds.level():
        match schema:
            case Union():
                return any(_fits(value, branch, bounds) for branch in schema.branches)
            case Array():
                return isinstance(value, list) and all(
                    _fits(item, schema.items, bounds) for item in value
                )
            case Map():
                return isinstance(value, dict) and all(
                    _fits(item, schema.values, bounds) for item in value.values()
                )
            case Record():
                return isinstance(value, dict) and all(
                    _fits(value.get(field.name, field.default), field.type, bounds)
                    for field in schema.fields
                )
            case Enum() | Fixed():
                return isinstance(value, str)
            case _:
                return _fits_primitive(value, schema.kind)


def _fits_primitive(value: object, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int":
            return _is_integer(value, 32)
        case "long":
            return _is_integer(value, 64)
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, str)


def _is_integer(value: object, bits: int) -> bool:
    return (
        isinstance(value, int)
        and not isinstance(value, bool)
        and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    )


def _called(schema: AvroType) -> str:
    match schema:
        case Union():
            return " or ".join(_called(branch) for branch in schema.branches)
        case Record() | Enum() | Fixed():
            return f"{schema.kind} {schema.name.full}"
        case _:
            return schema.kind
