"""Parses Avro schemas for columns, and rejects those whose values fit no column."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import (
    AvroPrimitive,
    AvroRecord,
    AvroType,
    inner_types,
)
from barnabas.schemas.avro.parser import parse_stored_schema

MAX_DEPTH = 64
"""Levels of nested types. Spark does not support more either."""
MAX_TYPES = 5000
"""Types of a schema, counted where they are used. A few records that contain each other twice
would otherwise need more columns than fit in memory."""
MAP_KEY = AvroPrimitive("string")


def parse_reader_schema(text: str, references: Mapping[str, str]) -> AvroType:
    """Parses a schema that has columns. Raises SchemaError if its values fit no column."""
    schema = parse_stored_schema(text, references)
    if _count_types(schema, {}, ()) > MAX_TYPES:
        raise SchemaError(f"The schema is more than {MAX_TYPES} types, each where it is used.")
    return schema


def _count_types(schema: AvroType, counts: dict[int, int], enclosing: tuple[AvroType, ...]) -> int:
    if schema in enclosing:
        name = schema.name.full if isinstance(schema, AvroRecord) else schema.kind
        raise SchemaError(f"Record {name} contains itself, which no column can.")
    if len(enclosing) == MAX_DEPTH:
        raise SchemaError(f"The schema nests types more than {MAX_DEPTH} deep.")
    if id(schema) not in counts:
        enclosing = (*enclosing, schema)
        counts[id(schema)] = 1 + sum(
            _count_types(inner, counts, enclosing) for inner in inner_types(schema)
        )
    return counts[id(schema)]
