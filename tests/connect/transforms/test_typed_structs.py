"""What JSON cannot have: defaults of structs, and required fields that are null."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from barnabas.connect import ConnectBatch, ConnectSchema, SchemaField, Transform, Type, source_batch
from barnabas.connect.data.schema import NO_DEFAULT, TIMESTAMP, struct_schema
from barnabas.connect.errors import DataError, SchemaBuildError
from barnabas.connect.plugins import find_transform

STRING, INT = ConnectSchema(Type.STRING), ConnectSchema(Type.INT32)


def transform(name: str, settings: dict[str, str]) -> Transform:
    found = find_transform(f"org.apache.kafka.connect.transforms.{name}")()
    found.configure(settings)
    return found


def batch_of(schema: ConnectSchema, *rows: Any) -> ConnectBatch:
    return source_batch("t", schema, pa.array(rows, schema.arrow_type()))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("Cast$Value", {"spec": "b:int64"}),
        ("InsertField$Value", {"topic.field": "t"}),
        ("MaskField$Value", {"fields": "b"}),
        ("ReplaceField$Value", {"exclude": "b"}),
        ("SetSchemaMetadata$Value", {"schema.name": "n"}),
        ("HeaderFrom$Value", {"fields": "b", "headers": "h", "operation": "move"}),
        ("ValueToKey", {"fields": "a"}),
        ("Flatten$Value", {}),
        ("TimestampConverter$Value", {"field": "c", "target.type": "Date"}),
    ],
)
def test_a_required_field_that_is_null_fails_its_row(name: str, settings: dict[str, str]) -> None:
    schema = struct_schema({"a": STRING, "b": INT, "c": ConnectSchema(Type.INT64)})
    rows = [{"a": "x", "b": 1, "c": 5}, {"a": None, "b": 1, "c": 5}]
    transformed = transform(name, settings).apply(batch_of(schema, *rows))
    assert [(each.row, str(each.error)) for each in transformed.errors] == [
        (1, 'Invalid value: null used for required field: "a", schema type: STRING')
    ]
    ((batch, indices),) = transformed.batches
    assert indices.to_pylist() == [0]
    assert len(batch) == 1


def test_a_null_of_a_required_field_is_an_error_without_its_default() -> None:
    schema = struct_schema({"a": ConnectSchema(Type.STRING, default="d")})
    batch = batch_of(schema, {"a": None})
    settings = {"topic.field": "t", "replace.null.with.default": "false"}
    assert len(transform("InsertField$Value", settings).apply(batch).errors) == 1
    settings["replace.null.with.default"] = "true"
    ((inserted, _),) = transform("InsertField$Value", settings).apply(batch).batches
    assert inserted.value.to_pylist() == [{"a": "d", "t": "t"}]


def test_flatten_takes_defaults_from_the_structs_around() -> None:
    inner = ConnectSchema(
        Type.STRUCT,
        default={"b": 5, "c": 6},
        fields=(SchemaField("b", INT), SchemaField("c", ConnectSchema(Type.INT32, default=7))),
    )
    outer = ConnectSchema(
        Type.STRUCT,
        is_optional=True,
        default={"a": {"b": 8, "c": 9}, "s": "x"},
        fields=(SchemaField("a", inner), SchemaField("s", STRING)),
    )
    batch = batch_of(outer, {"a": {"b": 1, "c": None}, "s": "y"})
    ((flat, _),) = transform("Flatten$Value", {}).apply(batch).batches
    assert flat.value_schema is not None
    found = {
        each.name: (each.schema.default, each.schema.is_optional)
        for each in flat.value_schema.fields
    }
    assert found == {"a.b": (5, True), "a.c": (7, True), "s": ("x", True)}
    assert not flat.value_schema.has_default
    assert flat.value.to_pylist() == [{"a.b": 1, "a.c": 7, "s": "y"}]


def test_timestamps_in_the_default_of_a_struct_are_converted() -> None:
    schema = ConnectSchema(
        Type.STRUCT,
        is_optional=True,
        default={"t": 1000, "a": "x"},
        fields=(SchemaField("t", ConnectSchema(Type.INT64)), SchemaField("a", STRING)),
    )
    settings = {"field": "t", "target.type": "Timestamp"}
    ((batch, _),) = (
        transform("TimestampConverter$Value", settings)
        .apply(batch_of(schema, {"t": 5, "a": "y"}, None))
        .batches
    )
    converted = batch.value_schema
    assert converted is not None
    assert converted.is_optional
    assert converted.fields[0].schema.name == TIMESTAMP
    assert converted.default == {"t": datetime.fromtimestamp(1, UTC), "a": "x"}


def test_cast_rejects_the_default_of_a_struct() -> None:
    schema = ConnectSchema(Type.STRUCT, default={"a": 1}, fields=(SchemaField("a", INT),))
    with pytest.raises(DataError, match="does not support casting from STRUCT"):
        transform("Cast$Value", {"spec": "a:int8"}).apply(batch_of(schema, {"a": 1}))


def test_cast_casts_defaults() -> None:
    schema = struct_schema({"a": ConnectSchema(Type.STRING, default="300"), "b": INT})
    ((batch, _),) = (
        transform("Cast$Value", {"spec": "a:int16,b:string"})
        .apply(batch_of(schema, {"a": "1", "b": 2}))
        .batches
    )
    assert batch.value_schema is not None
    assert [each.schema.default for each in batch.value_schema.fields] == [300, NO_DEFAULT]


def test_a_field_that_exists_cannot_be_inserted() -> None:
    with pytest.raises(SchemaBuildError, match="field name duplication a"):
        transform("InsertField$Value", {"topic.field": "a"}).apply(
            batch_of(struct_schema({"a": INT}), {"a": 1})
        )


def test_maps_of_arrow_without_schema_are_maps() -> None:
    values = pa.array([[("a", 1), ("b", 2)], [("b", 3)], None], pa.map_(pa.string(), pa.int64()))
    batch = source_batch("t", None, values)
    ((replaced, _),) = transform("ReplaceField$Value", {"renames": "b:c"}).apply(batch).batches
    assert replaced.value.to_pylist() == [{"a": 1, "c": 2}, {"a": None, "c": 3}, None]


def test_values_of_another_arrow_type_are_cast_to_their_schema() -> None:
    values = pa.array([{"a": "x"}], pa.struct([("a", pa.large_string())]))
    batch = source_batch("t", struct_schema({"a": STRING}), values)
    ((masked, _),) = transform("MaskField$Value", {"fields": "a"}).apply(batch).batches
    assert masked.value.to_pylist() == [{"a": ""}]


def test_an_empty_batch_stays_empty() -> None:
    batch = batch_of(struct_schema({"a": INT}), {"a": 1}).slice(1)
    for name, settings in (
        ("Flatten$Value", {}),
        ("InsertField$Value", {"topic.field": "t"}),
        ("HeaderFrom$Value", {"fields": "a", "headers": "h", "operation": "copy"}),
        ("InsertHeader", {"header": "h", "value.literal": "1"}),
        ("TimestampRouter", {}),
        ("RegexRouter", {"regex": "t", "replacement": "u"}),
    ):
        transformed = transform(name, settings).apply(batch)
        assert sum(len(each) for each, _ in transformed.batches) == 0
        assert not transformed.errors
