"""Applies our transforms to the records of a case, as a pipeline does."""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from tests.connect.transforms.cases import PREFIX, Case, Record

from barnabas.connect.converters.json import JsonConverter
from barnabas.connect.data.batch import ConnectBatch, headers_type
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.errors import ConnectError, InvalidConfigError
from barnabas.connect.plugins import find_predicate, find_transform
from barnabas.connect.transforms.transform import Predicate, Transform


def applied(case: Case) -> dict[str, Any]:
    """Returns what `ApplyTransforms.java` prints for the case."""
    is_predicate = case.transform.startswith("predicates.")
    find: Any = find_predicate if is_predicate else find_transform
    plugin: Transform | Predicate = find(PREFIX + case.transform)()
    try:
        plugin.configure(dict(case.settings))
    except InvalidConfigError as error:
        return {"error": described(error)}
    converter = json_converter(case)
    batch = batch_of(case.records, converter, is_source=case.is_source)
    if isinstance(plugin, Predicate):
        return {"results": [{"is": each} for each in plugin.test(batch).to_pylist()]}
    results: list[Any] = [None] * len(batch)
    try:
        transformed = plugin.apply(batch)
    except ConnectError as error:
        return {"results": [{"error": described(error)}] * len(batch)}
    for failed in transformed.errors:
        results[failed.row] = {"error": described(failed.error)}
    for part, rows in transformed.batches:
        require_consistent(part)
        written = records_of(part, converter)
        for row, record in zip(rows.to_pylist(), written, strict=True):
            assert results[row] is None
            results[row] = record
    return {"results": results}


def json_converter(case: Case) -> JsonConverter:
    converter = JsonConverter()
    settings = {"replace.null.with.default": str(case.replaces_nulls).lower()}
    converter.configure(settings, is_key=False)
    return converter


def batch_of(
    records: Sequence[Record], converter: JsonConverter, *, is_source: bool = False
) -> ConnectBatch:
    key_schema, key = column([each.key for each in records], converter)
    value_schema, value = column([each.value for each in records], converter)
    headers = [
        [{"key": name, "value": text.encode()} for name, text in each.headers] or None
        for each in records
    ]
    return ConnectBatch(
        topic=pa.array([each.topic for each in records], pa.string()),
        partition=pa.array([None if is_source else each.partition for each in records], pa.int32()),
        offset=pa.array([None if is_source else each.offset for each in records], pa.int64()),
        timestamp=pa.array([each.timestamp for each in records], pa.timestamp("ms", "UTC")),
        key_schema=key_schema,
        key=key,
        value_schema=value_schema,
        value=value,
        headers=pa.array(headers, headers_type()),
    )


def column(
    texts: Sequence[str | None], converter: JsonConverter
) -> tuple[ConnectSchema | None, pa.Array]:
    payloads = [None if text is None else text.encode() for text in texts]
    conversion = converter.to_connect("topic", pa.array(payloads, pa.binary()))
    assert not conversion.errors, conversion.errors
    assert len(conversion.runs) == 1, conversion.runs
    return conversion.runs[0].schema, conversion.runs[0].values


def require_consistent(batch: ConnectBatch) -> None:
    """Checks the arrays, and that they have the types of their schemas."""
    for schema, values in ((batch.key_schema, batch.key), (batch.value_schema, batch.value)):
        values.validate(full=True)
        assert len(values) == len(batch)
        if schema is not None:
            assert values.type == schema.arrow_type()


def records_of(batch: ConnectBatch, converter: JsonConverter) -> list[dict[str, Any]]:
    keys = written(batch.key_schema, batch.key, converter)
    values = written(batch.value_schema, batch.value, converter)
    timestamps = batch.timestamp.cast(pa.int64()).to_pylist()
    return [
        {
            "topic": topic,
            "timestamp": timestamp,
            "key": key,
            "value": value,
            "headers": [
                [each["key"], None if each["value"] is None else each["value"].decode()]
                for each in headers or []
            ],
        }
        for topic, timestamp, key, value, headers in zip(
            batch.topic.to_pylist(),
            timestamps,
            keys,
            values,
            batch.headers.to_pylist(),
            strict=True,
        )
    ]


def written(
    schema: ConnectSchema | None, values: pa.Array, converter: JsonConverter
) -> list[str | None]:
    converted = converter.from_connect("topic", schema, values)
    texts = [None if each is None else each.decode() for each in converted.payloads.to_pylist()]
    for error in converted.errors:
        texts[error.row] = "error"
    return texts


def described(error: Exception) -> str:
    return f"{error.java_class}: {error}"  # type: ignore[attr-defined]


def normalized(case: Case, answer: Mapping[str, Any], *, is_compact: bool = True) -> Any:
    """Returns the error of an answer, or what became of each record, without what is as it was.

    It leaves out what cannot be compared: maps have no order and no nulls here, a null has no
    schema, and the messages of converters are not those of transforms. With `is_compact`, a schema
    that is that of the record before is left out too.
    """
    results = answer.get("results")
    if results is None:
        return dict(answer)
    schema: dict[str, Any] = {}
    return [
        _changes(before, result, schema if is_compact else {})
        for before, result in zip(case.request()["records"], results, strict=True)
    ]


def _changes(
    before: dict[str, Any], result: dict[str, Any] | None, schema: dict[str, Any]
) -> dict[str, Any] | None:
    if result is None or "topic" not in result:
        return result
    changes = {name: value for name, value in result.items() if value != before[name]}
    for part in ("key", "value"):
        after = _normalized_payload(result[part])
        if after == _normalized_payload(before[part]):
            changes.pop(part, None)
            continue
        changes[part] = after
        if isinstance(after, dict):
            if schema.get(part) == after["schema"]:
                changes[part] = {"payload": after["payload"]}
            schema[part] = after["schema"]
    return changes


def _normalized_payload(text: str | None) -> Any:
    """Returns the text of the schema and the payload; None for null."""
    if text is None or text.startswith("error"):
        return None if text is None else "error"
    document = json.loads(text)
    if document["payload"] is None:
        return None
    has_schema = document["schema"] is not None
    schema = _normalized_value(document["schema"], has_nulls=True)
    return {
        "schema": json.dumps(schema) if has_schema else None,
        "payload": _normalized_value(document["payload"], has_nulls=has_schema),
    }


def _normalized_value(value: Any, *, has_nulls: bool) -> Any:
    if isinstance(value, dict):
        return {
            name: _normalized_value(each, has_nulls=has_nulls)
            for name, each in value.items()
            if has_nulls or each is not None
        }
    if isinstance(value, list):
        return [_normalized_value(each, has_nulls=has_nulls) for each in value]
    return _as_float(value) if isinstance(value, float) else value


def _as_float(number: float) -> float:
    """Returns the nearest float of 32 bits.

    Before version 19, Java wrote more digits of some than needed, so texts cannot be compared.
    """
    try:
        single: float = struct.unpack("f", struct.pack("f", number))[0]
    except OverflowError:
        return number
    return float(f"{single:.9g}")
