"""Validates the names and default values of new schemas.

Schemas that other registries have stored without this validation stay readable and comparable.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from barnabas.schemas import SchemaError, json_text
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroFixed,
    AvroMap,
    AvroRecord,
    AvroType,
    AvroUnion,
    NamedAvroType,
)
from barnabas.schemas.bounds import WalkBounds


def validate(schema: AvroType, unchecked: Collection[str]) -> None:
    """Raises SchemaError for the first invalid name or default. Types in `unchecked` are skipped.

    The default of a union may be of any of its branches, as in Avro since 1.12.
    """
    bounds = WalkBounds("check it")
    for named in _named(schema, unchecked, bounds):
        _check_names(named)
        if isinstance(named, AvroRecord):
            _check_fields(named, bounds)


_SIMPLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _named(
    schema: AvroType, unchecked: Collection[str], bounds: WalkBounds
) -> Iterator[NamedAvroType]:
    seen: set[int] = set()
    pending = [schema]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        bounds.step()
        match current:
            case AvroArray():
                pending.append(current.items)
            case AvroMap():
                pending.append(current.values)
            case AvroUnion():
                pending.extend(current.branches)
            case AvroRecord() | AvroEnum() | AvroFixed() if current.name.full not in unchecked:
                yield current
                if isinstance(current, AvroRecord):
                    pending.extend(field.type for field in current.fields)


def _check_names(named: NamedAvroType) -> None:
    description = f"the {named.kind} {named.name.full}"
    _check_name(named.name.simple, description)
    for part in named.name.namespace.split(".") if named.name.namespace else ():
        _check_name(part, f"the namespace of {description}")
    for symbol in named.symbols if isinstance(named, AvroEnum) else ():
        _check_name(symbol, f"a symbol of {description}")


def _check_fields(record: AvroRecord, bounds: WalkBounds) -> None:
    for field in record.fields:
        location = f"the field {record.name.full}.{field.name}"
        _check_name(field.name, location)
        if field.default is not MISSING and not _fits(field.default, field.type, bounds):
            raise SchemaError(
                f"Invalid default for {location}: {json_text.write(field.default)} is no"
                f" {_called(field.type)}"
            )


def _check_name(name: str, location: str) -> None:
    if not _SIMPLE_NAME.fullmatch(name):
        raise SchemaError(
            f"{json_text.write(name)} is no name for {location}:"
            " letters, digits and _ are, not beginning with a digit"
        )


def _fits(value: object, schema: AvroType, bounds: WalkBounds) -> bool:
    with bounds.level():
        match schema:
            case AvroUnion():
                return any(_fits(value, branch, bounds) for branch in schema.branches)
            case AvroArray():
                return isinstance(value, list) and all(
                    _fits(item, schema.items, bounds) for item in value
                )
            case AvroMap():
                return isinstance(value, dict) and all(
                    _fits(item, schema.values, bounds) for item in value.values()
                )
            case AvroRecord():
                return isinstance(value, dict) and all(
                    _fits(value.get(field.name, field.default), field.type, bounds)
                    for field in schema.fields
                )
            case AvroEnum() | AvroFixed():
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
        case AvroUnion():
            return " or ".join(_called(branch) for branch in schema.branches)
        case AvroRecord() | AvroEnum() | AvroFixed():
            return f"{schema.kind} {schema.name.full}"
        case _:
            return schema.kind
