"""Compares limits of numbers, lengths and counts: a reader's may be wider, never tighter."""

from collections.abc import Iterator
from typing import Final

from barnabas.schemas.comparison import SchemaDifference
from barnabas.schemas.json_schema.shapes import Limits


def compare_limits(reader: Limits, writer: Limits) -> Iterator[SchemaDifference]:
    for keyword, bound in reader.items():
        name = _NAMES[keyword]
        written = writer.get(keyword)
        if written is None:
            yield SchemaDifference(f"{name}_ADDED", (keyword,))
        elif "MAX" in name and bound < written:
            yield SchemaDifference(f"{name}_DECREASED", (keyword,))
        elif "MIN" in name and bound > written:
            yield SchemaDifference(f"{name}_INCREASED", (keyword,))


_NAMES: Final = {
    "maxLength": "MAX_LENGTH",
    "minLength": "MIN_LENGTH",
    "maximum": "MAXIMUM",
    "minimum": "MINIMUM",
    "exclusiveMaximum": "EXCLUSIVE_MAXIMUM",
    "exclusiveMinimum": "EXCLUSIVE_MINIMUM",
    "maxProperties": "MAX_PROPERTIES",
    "minProperties": "MIN_PROPERTIES",
    "maxItems": "MAX_ITEMS",
    "minItems": "MIN_ITEMS",
    "maxContains": "MAX_CONTAINS",
    "minContains": "MIN_CONTAINS",
}
