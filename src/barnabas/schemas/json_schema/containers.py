"""Compares objects and arrays of two JSON schemas: their parts, and what may be added to them.

A content model is open if anything may be added, closed if nothing may, and partially open if
additions must match a schema (of additional, unevaluated or pattern properties).
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import re2

from barnabas.schemas.comparison import SchemaDifference
from barnabas.schemas.json_schema.documents import Subschema
from barnabas.schemas.json_schema.shapes import (
    ANY_SHAPE,
    NEVER_SHAPE,
    ArrayShape,
    Limits,
    ObjectShape,
)

if TYPE_CHECKING:
    from barnabas.schemas.json_schema.comparison import ShapeComparison


def compare_objects(
    comparison: "ShapeComparison", reader: ObjectShape, writer: ObjectShape
) -> Iterator[SchemaDifference]:
    both = [name for name in writer.properties if name in reader.properties]
    for name in both:
        newly_required = name in reader.required and name not in writer.required
        if newly_required and not _has_default(reader.properties[name]):
            yield SchemaDifference("REQUIRED_ATTRIBUTE_ADDED", ("required", name))
    for name in both:
        read, written = reader.properties[name], writer.properties[name]
        yield from comparison.compare_subschemas(read, written, "properties", name)
    for name in writer.properties:
        if name not in reader.properties:
            covering = _covering(reader, name)
            for difference in _removed(comparison, covering, writer.properties[name], "PROPERTY"):
                yield difference.under("properties", name)
    for name in reader.properties:
        if name not in writer.properties:
            for difference in _property_added(comparison, name, reader, writer):
                yield difference.under("properties", name)
    yield from _dependencies(comparison, reader, writer)
    yield from _additional(comparison, reader.additional, writer.additional, "Properties")
    yield from _unevaluated(comparison, reader.unevaluated, writer.unevaluated, "Properties")
    yield from compare_limits(reader.limits, writer.limits)


def compare_arrays(
    comparison: "ShapeComparison", reader: ArrayShape, writer: ArrayShape
) -> Iterator[SchemaDifference]:
    if reader.every is not None:
        if writer.every is None:
            yield SchemaDifference("SCHEMA_ADDED", ("items",))
        else:
            yield from comparison.compare_subschemas(reader.every, writer.every, "items")
    for index, (read, written) in enumerate(zip(reader.first, writer.first, strict=False)):
        yield from comparison.compare_subschemas(read, written, "items", str(index))
    for index, written in enumerate(writer.first[len(reader.first) :], len(reader.first)):
        for difference in _removed(comparison, _rest(reader), written, "ITEM"):
            yield difference.under("items", str(index))
    for index, read in enumerate(reader.first[len(writer.first) :], len(writer.first)):
        for difference in _item_added(comparison, read, writer):
            yield difference.under("items", str(index))
    yield from _additional(comparison, reader.additional, writer.additional, "Items")
    yield from _unevaluated(comparison, reader.unevaluated, writer.unevaluated, "Items")
    yield from compare_limits(reader.limits, writer.limits)
    if reader.unique and not writer.unique:
        yield SchemaDifference("UNIQUE_ITEMS_ADDED", ("uniqueItems",))


class _Open:
    """Stands for the schema of additions in an open content model."""


_OPEN = _Open()
Covering = Subschema | _Open | None
"""The schema of properties or items that are not named; None in a closed content model."""


def _covering(schema: ObjectShape, name: str) -> Covering:
    for pattern, subschema in schema.patterns.items():
        if _matches(pattern, name):
            return subschema
    rest = _rest(schema)
    return None if rest is _OPEN and schema.patterns else rest


def _rest(schema: ObjectShape | ArrayShape) -> Covering:
    rest = schema.unevaluated if schema.additional is None else schema.additional
    if rest is None or rest.node is True:
        return _OPEN
    return None if rest.node is False else rest


def _matches(pattern: str, name: str) -> bool:
    """A pattern that RE2 does not support matches nothing, which makes the comparison stricter."""
    try:
        return re2.search(pattern, name, _RE2_OPTIONS) is not None
    except re2.error:
        return False


_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False


def _removed(
    comparison: "ShapeComparison", covering: Covering, written: Subschema, what: str
) -> Iterable[SchemaDifference]:
    if isinstance(covering, _Open):
        return []
    if covering is not None:
        differences = list(comparison.compare_subschemas(covering, written))
        if differences:
            differences.append(
                SchemaDifference(f"{what}_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
            )
        return differences
    if comparison.shape(written) is NEVER_SHAPE:
        return []
    return [SchemaDifference(f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL")]


def _property_added(
    comparison: "ShapeComparison", name: str, reader: ObjectShape, writer: ObjectShape
) -> Iterator[SchemaDifference]:
    added, covering = reader.properties[name], _covering(writer, name)
    has_default = _has_default(added)
    if not isinstance(covering, _Open):
        yield from _added_to_partially_open(comparison, added, covering, "PROPERTY")
        if name in reader.required and not has_default:
            yield SchemaDifference("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL")
    elif comparison.shape(added) is ANY_SHAPE:
        return
    elif name not in reader.required:
        yield SchemaDifference("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL")
    elif has_default:
        yield SchemaDifference("REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL")
    else:
        yield SchemaDifference("REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL")


def _item_added(
    comparison: "ShapeComparison", added: Subschema, writer: ArrayShape
) -> Iterable[SchemaDifference]:
    covering = _rest(writer)
    if not isinstance(covering, _Open):
        return _added_to_partially_open(comparison, added, covering, "ITEM")
    if comparison.shape(added) is ANY_SHAPE:
        return []
    return [SchemaDifference("ITEM_ADDED_TO_OPEN_CONTENT_MODEL")]


def _added_to_partially_open(
    comparison: "ShapeComparison", added: Subschema, covering: Subschema | None, what: str
) -> Iterable[SchemaDifference]:
    differences = [] if covering is None else list(comparison.compare_subschemas(added, covering))
    if differences:
        differences.append(
            SchemaDifference(f"{what}_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL")
        )
    return differences


def _dependencies(
    comparison: "ShapeComparison", reader: ObjectShape, writer: ObjectShape
) -> Iterator[SchemaDifference]:
    for name, needed in reader.needed.items():
        change = _need_change(needed, writer.needed.get(name))
        if change is not None:
            yield SchemaDifference(f"DEPENDENCY_ARRAY_{change}", ("dependencies", name))
    for name, implied in reader.implied.items():
        if name not in writer.implied:
            yield SchemaDifference("DEPENDENCY_SCHEMA_ADDED", ("dependencies", name))
        else:
            yield from comparison.compare_subschemas(
                implied, writer.implied[name], "dependencies", name
            )


def _need_change(reader: frozenset[str], writer: frozenset[str] | None) -> str | None:
    if writer is None:
        return "ADDED"
    if reader <= writer:
        return None
    return "EXTENDED" if writer < reader else "CHANGED"


def _additional(
    comparison: "ShapeComparison", reader: Subschema | None, writer: Subschema | None, what: str
) -> Iterable[SchemaDifference]:
    keyword, name = f"additional{what}", f"ADDITIONAL_{what.upper()}"
    if reader is None or (writer is not None and writer.node is False):
        return []
    if reader.node is False:
        return [SchemaDifference(f"{name}_REMOVED", (keyword,))]
    if writer is None:
        return [SchemaDifference(f"{name}_NARROWED", (keyword,))]
    return comparison.compare_subschemas(reader, writer, keyword)


def _unevaluated(
    comparison: "ShapeComparison", reader: Subschema | None, writer: Subschema | None, what: str
) -> Iterable[SchemaDifference]:
    keyword, name = f"unevaluated{what}", f"UNEVALUATED_{what.upper()}"
    if reader is None or comparison.shape(reader) is ANY_SHAPE:
        return []
    if writer is None or comparison.shape(writer) is ANY_SHAPE:
        change = "REMOVED" if comparison.shape(reader) is NEVER_SHAPE else "NARROWED"
        return [SchemaDifference(f"{name}_{change}", (keyword,))]
    return comparison.compare_subschemas(reader, writer, keyword)


def _has_default(subschema: Subschema) -> bool:
    return not isinstance(subschema.node, bool) and "default" in subschema.node


def compare_limits(reader: Limits, writer: Limits) -> Iterator[SchemaDifference]:
    """Compares limits of numbers, lengths and counts: a reader's may be wider, never tighter."""
    for keyword, bound in reader.items():
        name = re.sub("([A-Z])", r"_\1", keyword).upper()  # maxLength: MAX_LENGTH
        written = writer.get(keyword)
        if written is None:
            yield SchemaDifference(f"{name}_ADDED", (keyword,))
        elif "MAX" in name and bound < written:
            yield SchemaDifference(f"{name}_DECREASED", (keyword,))
        elif "MIN" in name and bound > written:
            yield SchemaDifference(f"{name}_INCREASED", (keyword,))
