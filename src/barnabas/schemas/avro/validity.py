"""Whether a schema that can be read is one to register: its names, and the defaults of its fields.

Other registries may have stored what is not: it stays readable, and comparable.
"""

import re
from collections.abc import Collection, Iterator
from typing import Final

from barnabas.schemas import SchemaError, json_text
from barnabas.schemas.avro.model import (
    MISSING,
    Array,
    AvroType,
    Enum,
    Fixed,
    Map,
    Named,
    Record,
    Union,
)
from barnabas.schemas.bounds import Bounds


def check(schema: AvroType, unchecked: Collection[str]) -> None:
    """SchemaError that names the first bad name or default; types called `unchecked` aside.

    A default of a union may be of any of its branches, as Avro has it since 1.12.
    """
    bounds = Bounds("check it")
    for named in _named(schema, unchecked, bounds):
        _check_names(named)
        if isinstance(named, Record):
            _check_fields(named, bounds)


_SIMPLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _named(schema: AvroType, unchecked: Collection[str], bounds: Bounds) -> Iterator[Named]:
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
            case Record() | Enum() | Fixed() if current.name.full not in unchecked:
                yield current
                if isinstance(current, Record):
                    waiting.extend(field.type for field in current.fields)


def _check_names(named: Named) -> None:
    called = f"the {named.kind} {named.name.full}"
    _check_name(named.name.simple, called)
    for part in named.name.space.split(".") if named.name.space else ():
        _check_name(part, f"the namespace of {called}")
    for symbol in named.symbols if isinstance(named, Enum) else ():
        _check_name(symbol, f"a symbol of {called}")


def _check_fields(record: Record, bounds: Bounds) -> None:
    for field in record.fields:
        place = f"the field {record.name.full}.{field.name}"
        _check_name(field.name, place)
        if field.default is not MISSING and not _fits(field.default, field.type, bounds):
            raise SchemaError(
                f"Invalid default for {place}: {json_text.write(field.default)} is no"
                f" {_called(field.type)}"
            )


def _check_name(name: str, place: str) -> None:
    if not _SIMPLE_NAME.fullmatch(name):
        raise SchemaError(
            f"{json_text.write(name)} is no name for {place}:"
            " letters, digits and _ are, not beginning with a digit"
        )


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
