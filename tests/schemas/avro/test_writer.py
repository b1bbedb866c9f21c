"""Writing Avro schemas as Avro in Java does, normalized if requested."""

import pytest

from barnabas.schemas import SchemaType, parse
from barnabas.schemas.avro import AvroSchema

TEXTS = [
    ("a primitive", '{ "type" : "string" }', '"string"'),
    (
        "a primitive with properties",
        '{"avro.java.string":"String","type":"string"}',
        '{"type":"string","avro.java.string":"String"}',
    ),
    (
        "the order of a record",
        '{"fields":[{"type":"int","name":"a"}],"aliases":["Old"],"owner":"me","doc":"d",'
        '"namespace":"n","name":"R","type":"record"}',
        '{"type":"record","name":"R","namespace":"n","doc":"d","fields":'
        '[{"name":"a","type":"int"}],"owner":"me","aliases":["Old"]}',
    ),
    (
        "the order of a field",
        '{"type":"record","name":"R","fields":[{"x":1,"aliases":["b"],"order":"Descending",'
        '"default":5,"doc":"d","type":"int","name":"a"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","doc":"d","default":5,'
        '"order":"descending","aliases":["b"],"x":1}]}',
    ),
    (
        "an enum",
        '{"default":"A","symbols":["A","B"],"name":"E","type":"enum"}',
        '{"type":"enum","name":"E","symbols":["A","B"],"default":"A"}',
    ),
    (
        "a decimal",
        '{"scale":2,"precision":9,"logicalType":"decimal","size":8,"name":"F","type":"fixed"}',
        '{"type":"fixed","name":"F","size":8,"scale":2,"precision":9,"logicalType":"decimal"}',
    ),
    (
        "a full name is split, and what is inside takes its namespace",
        '{"type":"record","name":"a.b.R","fields":[{"name":"e","type":'
        '{"type":"enum","name":"a.b.E","symbols":[]}},{"name":"f","type":"a.b.E"},'
        '{"name":"g","type":{"type":"fixed","name":"F","namespace":"","size":1}},'
        '{"name":"h","type":["null","F"],"default":null}]}',
        '{"type":"record","name":"R","namespace":"a.b","fields":[{"name":"e","type":'
        '{"type":"enum","name":"E","symbols":[]}},{"name":"f","type":"E"},'
        '{"name":"g","type":{"type":"fixed","name":"F","namespace":"","size":1}},'
        '{"name":"h","type":["null","F"],"default":null}]}',
    ),
    (
        "numbers as Java prints them",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1e10},'
        '{"name":"b","type":"double","default":0.10},{"name":"c","type":"float","default":"2"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":1.0E10},'
        '{"name":"b","type":"double","default":0.1},{"name":"c","type":"float","default":2.0}]}',
    ),
    (
        "letters of all alphabets",
        '{"type":"string","doc2":"gr\\u00fc\\u00df \\u001f\\n"}',
        '{"type":"string","doc2":"grüß \\u001F\\n"}',
    ),
    (
        "an error is one",
        '{"type":"error","name":"E","fields":[]}',
        '{"type":"error","name":"E","fields":[]}',
    ),
]


@pytest.mark.parametrize(
    ("given", "text"), [row[1:] for row in TEXTS], ids=[row[0] for row in TEXTS]
)
def test_a_schema_is_written_in_avros_order(given: str, text: str) -> None:
    parsed = parse(SchemaType.AVRO, given, {})
    assert parsed.text == text
    assert parse(SchemaType.AVRO, text, {}).text == text


SAME = [
    (
        "properties",
        '{"type":"int","b":1,"a":{"z":1,"y":2},"logicalType":"date"}',
        '{"type":"int","logicalType":"date","a":{"y":2,"z":1},"b":1}',
    ),
    (
        "a decimal",
        '{"type":"bytes","a":1,"scale":2,"precision":9,"logicalType":"decimal"}',
        '{"type":"bytes","logicalType":"decimal","precision":9,"scale":2,"a":1}',
    ),
    (
        "a logical type that does not fit is a property",
        '{"type":"string","logicalType":"date","a":1}',
        '{"type":"string","a":1,"logicalType":"date"}',
    ),
    (
        "aliases, docs and defaults",
        '{"type":"record","name":"n.R","doc":"","aliases":["n.Z","A"],"fields":[{"name":"m",'
        '"type":{"type":"map","values":"int"},"default":{"b":1,"a":2},"order":"ascending",'
        '"aliases":["q","p"]}]}',
        '{"type":"record","name":"R","namespace":"n","fields":[{"name":"m","type":'
        '{"type":"map","values":"int"},"default":{"a":2,"b":1},"aliases":["p","q"]}],'
        '"aliases":["A","Z"]}',
    ),
]


@pytest.mark.parametrize(
    ("given", "normalized"), [row[1:] for row in SAME], ids=[row[0] for row in SAME]
)
def test_parts_without_meaning_are_normalized(given: str, normalized: str) -> None:
    parsed = parse(SchemaType.AVRO, given, {})
    assert parsed.normalized == normalized
    assert parse(SchemaType.AVRO, normalized, {}).normalized == normalized


def test_the_order_of_fields_symbols_and_branches_is_kept() -> None:
    text = (
        '{"type":"record","name":"R","fields":[{"name":"z","type":["string","null"]},'
        '{"name":"a","type":{"type":"enum","name":"E","symbols":["B","A"]}}]}'
    )
    assert parse(SchemaType.AVRO, text, {}).normalized == text


def test_a_resolved_text_needs_no_references() -> None:
    customer = '{"type":"record","name":"shop.Customer","fields":[{"name":"n","type":"string"}]}'
    order = (
        '{"type":"record","name":"Order","namespace":"shop","fields":'
        '[{"name":"by","type":"Customer"},{"name":"to","type":"Customer"}]}'
    )
    parsed = parse(SchemaType.AVRO, order, {"shop.Customer": customer})
    assert isinstance(parsed, AvroSchema)
    assert parsed.text == order
    assert parsed.resolved == order.replace(
        '"Customer"',
        '{"type":"record","name":"Customer","fields":[{"name":"n","type":"string"}]}',
        1,
    )
