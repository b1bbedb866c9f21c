"""Datagen: rows that depend on the seed and their number, from quickstarts and Avro schemas."""

import json
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.connect.connectors.writing import read, values

from barnabas.connect import ConnectError, ConnectSchema, InvalidConfigError, Type
from barnabas.connect.connectors.datagen import Datagen
from barnabas.connect.connectors.datagen.generator import CHUNK_ROWS, RecordGenerator
from barnabas.connect.connectors.datagen.patterns import parse_pattern
from barnabas.connect.connectors.datagen.quickstarts import QUICKSTARTS
from barnabas.connect.data.schema import TIMESTAMP


def datagen(**settings: str) -> Datagen:
    connector = Datagen()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    connector.configure({"name": "c", "kafka.topic": "t", "max.interval": "0", **given})
    return connector


def generate(avro: Any, count: int = 500) -> list[Any]:
    """Returns the values of a field of this type."""
    record = {"type": "record", "name": "r", "fields": [{"name": "v", "type": avro}]}
    rows = RecordGenerator(record).generate(7, 0, 0, count).to_pylist()
    return [row["v"] for row in rows]


def hinted(type_: str, **arguments: Any) -> dict[str, Any]:
    return {"type": type_, "arg.properties": arguments}


# Quickstarts


@pytest.mark.parametrize("name", sorted(QUICKSTARTS))
def test_a_quickstart_has_typed_rows_and_a_key(name: str) -> None:
    connector = datagen(quickstart=name.upper())
    (batch,) = read(connector, {"task.id": 0}, max_rows=100)
    records = batch.records
    assert len(records) == 100
    assert records.value_schema is not None
    assert records.value.type == records.value_schema.arrow_type()
    assert records.value.null_count == 0
    key = QUICKSTARTS[name].key
    assert records.key.to_pylist() == [row[key] for row in records.value.to_pylist()]
    assert records.key_schema == records.value_schema.field(key).schema  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "record", "fields"),
    [
        ("users", "ksql.users", ["registertime", "userid", "regionid", "gender"]),
        ("pageviews", "ksql.pageviews", ["viewtime", "userid", "pageid"]),
        ("orders", "ksql.orders", ["ordertime", "orderid", "itemid", "orderunits", "address"]),
        (
            "stock_trades",
            "ksql.StockTrade",
            ["side", "quantity", "symbol", "price", "account", "userid"],
        ),
    ],
)
def test_known_quickstarts_have_their_fields(name: str, record: str, fields: list[str]) -> None:
    schema = RecordGenerator(QUICKSTARTS[name].schema).schema
    assert schema.name == record
    assert [field.name for field in schema.fields] == fields


# Positions


def test_rows_depend_only_on_the_seed_the_task_and_their_number() -> None:
    connector = datagen(quickstart="users_", random_seed="1")
    count = CHUNK_ROWS + 100
    all_rows = values(read(connector, {"task.id": 0}, max_rows=count))
    rows, position = [], None
    for size in (1, 99, CHUNK_ROWS - 50, 50):
        batches = read(
            datagen(quickstart="users_", random_seed="1"), {"task.id": 0}, position, size
        )
        rows += values(batches)
        position = batches[-1].position
    assert rows == all_rows
    assert position == {"task.generation": 0, "current.iteration": count, "random.seed": 1}
    other = values(read(connector, {"task.id": 1}, max_rows=100))
    assert other != all_rows[:100]


def test_the_seed_is_kept_in_the_position() -> None:
    connector = datagen(quickstart="users")
    (first,) = read(connector, {"task.id": 0}, max_rows=10)
    seed = first.position["random.seed"]
    (second,) = read(datagen(quickstart="users"), {"task.id": 0}, first.position, 10)
    assert second.position["random.seed"] == seed
    expected = datagen(quickstart="users", random_seed=str(seed))
    assert values([first, second]) == values(read(expected, {"task.id": 0}, max_rows=20))


def test_each_task_has_a_partition() -> None:
    assert datagen(quickstart="users", tasks_max="2").partitions() == [
        {"task.id": 0},
        {"task.id": 1},
    ]


def test_headers_number_the_rows() -> None:
    position = {"task.generation": 0, "current.iteration": 41, "random.seed": 1}
    (batch,) = read(datagen(quickstart="users"), {"task.id": 3}, position, 2)
    assert batch.records.headers.to_pylist()[1] == [
        {"key": "task.generation", "value": b"0"},
        {"key": "task.id", "value": b"3"},
        {"key": "current.iteration", "value": b"42"},
    ]


def test_a_task_fails_after_its_iterations() -> None:
    connector = datagen(quickstart="users", iterations="15")
    batches = read(connector, {"task.id": 0}, max_rows=10)
    batches += read(connector, {"task.id": 0}, batches[-1].position, 10)
    assert len(values(batches)) == 15
    assert connector.has_new({"task.id": 0}, batches[-1].position)
    with pytest.raises(ConnectError, match="generated the configured 15 number of messages"):
        read(connector, {"task.id": 0}, batches[-1].position, 10)


def test_rows_are_due_as_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    connector = datagen(quickstart="users", max_interval="20")
    partition = {"task.id": 0}
    assert connector.poll_interval_ms == 100
    assert len(values(read(connector, partition))) == 1
    assert not connector.has_new(partition, {})
    now[0] += 1.5
    assert connector.has_new(partition, {})
    assert not connector.has_new(partition, {})
    assert len(values(read(connector, partition))) == 150
    now[0] += 1000
    assert len(values(read(connector, partition, max_rows=500))) == 500


# Schemas


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "abc",
        "User_[1-9]",
        "[^a-z]{3}",
        "(ab|c)?d*",
        "\\d{2,4}-\\w+",
        "a.c",
        "[a\\]-]+",
        "x{0}y",
    ],
)
def test_texts_match_their_pattern(pattern: str) -> None:
    texts = parse_pattern(pattern).generate(np.random.default_rng(1), 200).to_pylist()
    assert all(re.fullmatch(pattern, text) for text in texts), texts[:5]
    assert len(texts) == 200


@pytest.mark.parametrize("pattern", ["(a", "a)", "[a", "*a", "a{2,1}", "a{x}", "(?=a)", "\\"])
def test_patterns_that_cannot_be_used_are_errors(pattern: str) -> None:
    with pytest.raises(InvalidConfigError, match="cannot be used to make texts"):
        parse_pattern(pattern)


def test_ranges_and_options() -> None:
    assert set(generate(hinted("int", range={"min": 3, "max": 6}))) == {3, 4, 5}
    assert set(generate(hinted("string", options=["a", "b"]))) == {"a", "b"}
    floats = generate(hinted("double", range={"min": -1, "max": 1}))
    assert -1 <= min(floats) < 0 < max(floats) <= 1
    assert set(generate({"type": "enum", "name": "e", "symbols": ["X", "Y"]})) == {"X", "Y"}
    assert 350 < sum(generate(hinted("boolean", odds=0.9))) < 500


def test_iterations_count_and_restart() -> None:
    assert generate(hinted("long", iteration={"start": 5, "step": 10}), 4) == [5, 15, 25, 35]
    around = hinted("int", iteration={"start": 0, "step": 2, "restart": 5})
    assert generate(around, 5) == [0, 2, 4, 0, 2]
    down = hinted("int", iteration={"start": 3, "restart": 0})
    assert generate(down, 5) == [3, 2, 1, 3, 2]
    names = hinted("string", iteration={"start": 1}, prefix="n-", suffix="!")
    assert generate(names, 2) == ["n-1!", "n-2!"]


def test_lengths() -> None:
    assert {len(each) for each in generate(hinted("string", length=4))} == {4}
    texts = generate(hinted("string", length={"min": 2, "max": 5}))
    assert {len(each) for each in texts} == {2, 3, 4}
    assert {len(each) for each in generate(hinted("bytes", length=3))} == {3}
    assert {len(each) for each in generate({"type": "fixed", "name": "f", "size": 16})} == {16}
    lists = generate(
        {"type": "array", "items": "int", "arg.properties": {"length": {"min": 0, "max": 3}}}
    )
    assert {len(each) for each in lists} == {0, 1, 2}


def test_nested_and_optional_types() -> None:
    point = {"type": "record", "name": "p", "fields": [{"name": "x", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "r",
        "namespace": "n",
        "doc": "Rows.",
        "fields": [
            {"name": "maybe", "type": ["null", "string"]},
            {"name": "points", "type": {"type": "array", "items": point}},
            {"name": "beside", "type": "int", "arg.properties": {"options": [5]}, "doc": "Five."},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {
                "name": "price",
                "type": hinted("bytes", range={"min": 1, "max": 2})
                | {"logicalType": "decimal", "precision": 9, "scale": 2},
            },
        ],
    }
    connector = datagen(schema_string=json.dumps(schema))
    (batch,) = read(connector, {"task.id": 0}, max_rows=200)
    found = batch.records.value_schema
    assert found is not None
    assert (found.name, found.doc) == ("n.r", "Rows.")
    assert found.field("maybe").schema == ConnectSchema(Type.STRING, is_optional=True)  # type: ignore[union-attr]
    assert found.field("beside").schema.doc == "Five."  # type: ignore[union-attr]
    assert found.field("at").schema.name == TIMESTAMP  # type: ignore[union-attr]
    rows = batch.records.value.to_pylist()
    assert {row["maybe"] is None for row in rows} == {True, False}
    assert {row["beside"] for row in rows} == {5}
    assert all(Decimal(1) <= row["price"] < Decimal(2) for row in rows)
    assert batch.records.key_schema is None


def test_a_schema_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "schema.avsc"
    file.write_text('{"type": "record", "name": "r", "fields": [{"name": "a", "type": "int"}]}')
    connector = datagen(schema_filename=str(file), schema_keyfield="a")
    (batch,) = read(connector, {"task.id": 0}, max_rows=3)
    assert batch.records.key.to_pylist() == [row["a"] for row in values([batch])]


RECORD = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": %s}]}'


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({}, "quickstart", "Exactly one of"),
        ({"quickstart": "users", "schema.string": "{}"}, "schema.string", "Exactly one of"),
        ({"quickstart": "user"}, "quickstart", "String must be one of"),
        ({"schema.string": "{"}, "schema.string", "Unable to parse the provided schema"),
        ({"schema.string": '"int"'}, "schema.string", "has to be a record"),
        ({"schema.string": RECORD % '"nope"'}, "schema.string", "Field 'a': Avro type 'nope'"),
        (
            {"schema.string": RECORD % '{"type": "int", "arg.properties": {"options": ["x"]}}'},
            "schema.string",
            "are not int32",
        ),
        ({"schema.filename": "/missing"}, "schema.filename", "Unable to read the schema"),
        ({"quickstart": "users", "schema.keyfield": "id"}, "schema.keyfield", "has no field 'id'"),
        ({"quickstart": "users", "max.interval": "-1"}, "max.interval", "at least 0"),
    ],
)
def test_settings_that_do_not_fit_are_errors(
    settings: dict[str, str], setting: str, message: str
) -> None:
    config = {"kafka.topic": "t", **settings}
    errors = {value.name: value.errors for value in Datagen.validate(config) if value.errors}
    assert message in errors[setting][0]
    with pytest.raises(InvalidConfigError):
        Datagen().configure(config)
