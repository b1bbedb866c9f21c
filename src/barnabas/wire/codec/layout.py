"""The layout of a struct: its fields with their types and versions resolved."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from barnabas.wire.schema import ZERO_OF_TYPE, Field, Struct, VersionRange


@dataclass(slots=True, frozen=True)
class Fixed:
    """A value of fixed size, with its letter in Python's `struct` formats."""

    code: str
    size_bytes: int
    zero: object


@dataclass(slots=True, frozen=True)
class Sized:
    """Length-prefixed bytes: text, bytes, or records."""

    is_text: bool
    is_records: bool
    length_code: str
    zero: object


LONGEST_TEXT_BYTES = 2**15 - 1
"""The limit of a plain length; compact lengths could be larger, but no peer would accept it."""

Scalar: TypeAlias = Fixed | Sized | type[Struct]

_SCALARS: dict[str, Scalar] = {
    "bool": Fixed("?", 1, False),
    "int8": Fixed("b", 1, 0),
    "int16": Fixed("h", 2, 0),
    "uint16": Fixed("H", 2, 0),
    "int32": Fixed("i", 4, 0),
    "uint32": Fixed("I", 4, 0),
    "int64": Fixed("q", 8, 0),
    "float64": Fixed("d", 8, 0.0),
    "uuid": Fixed("16s", 16, bytes(16)),
    "string": Sized(is_text=True, is_records=False, length_code="h", zero=""),
    "bytes": Sized(is_text=False, is_records=False, length_code="i", zero=b""),
    "Records": Sized(is_text=False, is_records=True, length_code="i", zero=None),
}


@dataclass(slots=True, frozen=True)
class FieldLayout:
    """One field. `default` is unused if the default is an empty list or a struct."""

    name: str
    scalar: Scalar
    is_array: bool
    versions: VersionRange
    nullable: VersionRange | None
    tag: int | None
    default: Any
    ignorable: bool

    @property
    def defaults_to_empty(self) -> bool:
        return self.is_array and self.default is ZERO_OF_TYPE

    @property
    def defaults_to_struct(self) -> bool:
        return not self.is_array and self.default is ZERO_OF_TYPE

    def is_nullable(self, version: int) -> bool:
        return self.nullable is not None and version in self.nullable

    def smallest_element(self, version: int, flexible: bool) -> int:
        """Returns the minimum size in bytes of an element of this array."""
        return _smallest(self.scalar, version, flexible)


@cache
def layout(struct: type[Struct]) -> list[FieldLayout]:
    """Returns the fields of a struct, in the order they are written."""
    return [_field(struct, name, declared) for name, declared in struct.DECLARED.items()]


def _field(struct: type[Struct], name: str, declared: Field) -> FieldLayout:
    bare = declared.annotation.removesuffix(" | None")
    may_be_null = bare != declared.annotation
    is_array = bare.startswith("list[")
    type_name = bare[5:-1] if is_array else bare
    scalar = _SCALARS.get(type_name)
    if scalar is None:
        scalar = getattr(sys.modules[struct.__module__], type_name)
    default = declared.default
    if default is ZERO_OF_TYPE and not is_array and isinstance(scalar, (Fixed, Sized)):
        default = scalar.zero
        if default is None and not may_be_null:
            default = b""
    return FieldLayout(
        name=name,
        scalar=scalar,
        is_array=is_array,
        versions=VersionRange.parse(declared.versions),
        nullable=VersionRange.parse(declared.nullable) if may_be_null else None,
        tag=declared.tag,
        default=default,
        ignorable=declared.ignorable,
    )


def _smallest(scalar: Scalar, version: int, flexible: bool) -> int:
    if isinstance(scalar, Fixed):
        return scalar.size_bytes
    if isinstance(scalar, Sized):
        return 1 if flexible else {"h": 2, "i": 4}[scalar.length_code]
    total = 1 if flexible else 0
    for field in layout(scalar):
        if version not in field.versions or field.tag is not None:
            continue
        if field.is_array:
            total += 1 if flexible else 4
        elif isinstance(field.scalar, type) and field.is_nullable(version):
            total += 1
        else:
            total += _smallest(field.scalar, version, flexible)
    return total
