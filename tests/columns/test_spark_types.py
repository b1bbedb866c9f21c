"""Spark has the types of columns, and gives them back exactly as they are declared."""

import json
from typing import Any

import pyarrow as pa
import pytest
from tests.columns.avro.examples import SIMPLE

from barnabas.columns import avro, json_text
from barnabas.columns.language import SchemaSource

types = pytest.importorskip("pyspark.sql.pandas.types")

EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        *(
            {"name": f"{word}{index}", "type": form(kind)}
            for index, (kind, _) in enumerate(SIMPLE)
            for word, form in [
                ("plain", lambda kind: kind),
                ("nullable", lambda kind: ["null", kind]),
                ("list", lambda kind: {"type": "array", "items": kind}),
                ("nullable_list", lambda kind: {"type": "array", "items": [kind, "null"]}),
                ("map", lambda kind: {"type": "map", "values": kind}),
                ("nullable_map", lambda kind: {"type": "map", "values": ["null", kind]}),
            ]
        ),
        {"name": "nothing", "type": "null"},
        {"name": "union", "type": ["string", "long", "null"]},
        {"name": "fixed", "type": {"type": "fixed", "name": "F", "size": 3}},
        {"name": "enum", "type": {"type": "enum", "name": "E", "symbols": ["A"]}},
    ],
}
DOCUMENT = {
    "type": "object",
    "properties": {
        "a": {"type": "array", "items": {"type": "integer"}},
        "m": {"type": "object", "additionalProperties": {"type": "number"}},
        "o": {"type": "object", "properties": {"x": {"type": "boolean"}}},
    },
}


@pytest.mark.parametrize(("language", "schema"), [(avro, EVERYTHING), (json_text, DOCUMENT)])
def test_spark_has_the_same_types(language: Any, schema: Any) -> None:
    kind = language.arrow_type(SchemaSource(json.dumps(schema)), None)
    declared = pa.schema([pa.field("value", kind)])
    again = types.to_arrow_schema(types.from_arrow_schema(declared), timezone="UTC")
    assert again.equals(declared, check_metadata=True)
    assert str(again) == str(declared)  # equals() does not look at the names of items


def test_decoded_values_have_exactly_the_declared_type() -> None:
    source = SchemaSource(json.dumps(EVERYTHING))
    decoded = avro.decoder(source, source, None, framed=False).decode(
        pa.array([None, b""], pa.binary())
    )
    declared = avro.arrow_type(source, None)
    assert str(decoded.values.type) == str(declared)
    pa.RecordBatch.from_arrays([decoded.values], schema=pa.schema([("value", declared)])).validate(
        full=True
    )
