"""Columns through a registry: schemas are found by subject and by the ids in payloads."""

import json
import pickle
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from barnabas.columns import registered_schemas
from barnabas.columns.format import ColumnFormat, ColumnFormatError
from barnabas.columns.language import SchemaSource
from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import Schema, SchemaRegistryClient
from barnabas.schema_registry.error import SchemaRegistryError
from barnabas.schemas.framing import id_prefix

ROWS = pa.array([{"id": 1, "name": "a"}, None, {"id": 2, "name": None}])


def order(*more: Any) -> str:
    fields = [{"name": "id", "type": "long"}, *more]
    return json.dumps({"type": "record", "name": "Order", "fields": fields})


@pytest.fixture
def subject() -> str:
    return f"orders-{uuid4().hex}-value"


@pytest.fixture
def client(schema_registry: SchemaRegistry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": schema_registry.url})


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_a_subject_without_a_schema_gets_one_from_the_columns(
    schema_registry: SchemaRegistry, subject: str, name: Any
) -> None:
    described = ColumnFormat(name, subject, {"url": schema_registry.url})
    prepared = pickle.loads(pickle.dumps(described.prepared(ROWS.type)))
    payloads = prepared.encoder(ROWS.type).encode(ROWS)
    assert payloads.to_pylist()[0].startswith(id_prefix(prepared.schema_id))
    reading = pickle.loads(pickle.dumps(described.resolved()))
    decoded = reading.decoder().decode(payloads)
    assert decoded.reasons is None
    assert decoded.values.type == reading.arrow_type()
    assert decoded.values.to_pylist() == ROWS.to_pylist()


def test_payloads_of_several_schemas_come_in_their_order_and_foreign_ones_have_reasons(
    schema_registry: SchemaRegistry, client: SchemaRegistryClient, subject: str
) -> None:
    old, new = (
        client.register_schema(subject, Schema(text, "AVRO"))
        for text in (order(), order({"name": "n", "type": ["null", "int"], "default": None}))
    )
    payloads = [
        id_prefix(new) + b"\x02\x02\x0a",
        None,
        id_prefix(old) + b"\x04",
        b'{"id": 3}',
        id_prefix(2**31 - 1) + b"\x02",
        id_prefix(new) + b"\x06\x00",
        b"\0",
        id_prefix(old),
    ]
    decoder = ColumnFormat("avro", subject, {"url": schema_registry.url}).decoder()
    decoded = decoder.decode(pa.array(payloads, pa.binary()))
    assert decoded.values.to_pylist() == [
        {"id": 1, "n": 5},
        None,
        {"id": 2, "n": None},
        None,
        None,
        {"id": 3, "n": None},
        None,
        None,
    ]
    assert decoded.reasons is not None
    reasons = decoded.reasons.to_pylist()
    assert [row for row, reason in enumerate(reasons) if reason] == [3, 4, 6, 7]
    assert "starts with 0x7b" in reasons[3]
    assert "has no schema 2147483647" in reasons[4]
    assert "has 1 bytes, too few" in reasons[6]
    assert "in field 'id'" in reasons[7]


def test_a_payload_of_an_incompatible_schema_has_a_reason(
    schema_registry: SchemaRegistry, client: SchemaRegistryClient, subject: str
) -> None:
    other = client.register_schema(f"other-{subject}", Schema('"string"', "AVRO"))
    described = ColumnFormat("avro", subject, {"url": schema_registry.url}, schema_text=order())
    decoded = described.decoder().decode(pa.array([id_prefix(other) + b"\x02a"]))
    assert decoded.values.to_pylist() == [None]
    assert decoded.reasons is not None
    assert "written as string" in decoded.reasons.to_pylist()[0]


def test_an_unknown_id_is_looked_up_again_with_the_next_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known: dict[int, SchemaSource] = {}
    monkeypatch.setattr(
        registered_schemas, "schema_by_id", lambda _conf, number, _subject: known.get(number)
    )
    decoder = ColumnFormat("avro", None, {"url": "http://here"}, schema_text=order()).decoder()
    payloads = pa.array([id_prefix(1) + b"\x02"])
    assert decoder.decode(payloads).values.to_pylist() == [None]
    known[1] = SchemaSource(order())
    assert decoder.decode(payloads).values.to_pylist() == [{"id": 1}]


def test_a_registered_schema_is_used_and_mismatches_are_named(
    schema_registry: SchemaRegistry, client: SchemaRegistryClient, subject: str
) -> None:
    schema_id = client.register_schema(subject, Schema(order(), "AVRO"))
    described = ColumnFormat("avro", subject, {"url": schema_registry.url})
    kind = pa.struct([("id", pa.int32())])
    payloads = described.encoder(kind).encode(pa.array([{"id": 1}], kind))
    assert payloads.to_pylist() == [id_prefix(schema_id) + b"\x02"]
    with pytest.raises(ValueError, match="Field 'more' is not in the schema"):
        described.encoder(pa.struct([("id", pa.int64()), ("more", pa.int64())]))


def test_an_unknown_subject_is_an_error(schema_registry: SchemaRegistry, subject: str) -> None:
    with pytest.raises(ColumnFormatError, match="has no schema yet"):
        ColumnFormat("avro", subject, {"url": schema_registry.url}).decoder()


def test_an_unreachable_registry_is_an_error_and_not_a_reason() -> None:
    described = ColumnFormat(
        "avro", None, {"url": "http://127.0.0.1:1", "retries.wait.ms": 1}, schema_text=order()
    )
    with pytest.raises(SchemaRegistryError):
        described.decoder().decode(pa.array([id_prefix(1) + b"\x02"]))
