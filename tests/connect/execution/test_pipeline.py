"""Converters, transforms and predicates over batches, and what happens to records that fail."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest
from tests.connect.execution.memory import MODULE, STRING

from barnabas.connect import InvalidConfigError, source_batch
from barnabas.connect.errors import RetriableError
from barnabas.connect.execution.pipeline import Pipeline
from barnabas.connect.execution.record_errors import (
    RecordErrors,
    Stage,
    ToleranceExceededError,
)
from barnabas.connect.execution.settings import ErrorSettings, error_settings, pipeline_settings

WORKER = {"key.converter": f"{MODULE}:TextConverter", "value.converter": f"{MODULE}:TextConverter"}
TOLERANT = ErrorSettings(is_tolerant=True, dead_letter_topic="dlq", is_logged=True)
UPPER = {"transforms": "up", "transforms.up.type": f"{MODULE}:Upper"}


def raw(*values: str | None, topic: str = "t") -> pa.RecordBatch:
    count = len(values)
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.nulls(count, pa.binary()),
            "value": pa.array([value and value.encode() for value in values], pa.binary()),
            "topic": pa.array([topic] * count),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(100, 100 + count), pa.int64()),
            "timestamp": pa.array([5] * count, pa.timestamp("us", "UTC")),
            "headers": pa.nulls(
                count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
            ),
        }
    )


def written(
    batch: pa.RecordBatch,
    config: Mapping[str, str] | None = None,
    settings: ErrorSettings = TOLERANT,
) -> tuple[list[tuple[int, str | None]], RecordErrors]:
    """Returns the rows of the batch and the values that a sink gets, and the errors."""
    errors = RecordErrors(settings, "c", 0)
    pipeline = Pipeline(pipeline_settings(config or {}, WORKER))
    rows = [
        row
        for tracked in pipeline.from_records(batch, errors)
        for row in zip(tracked.rows.to_pylist(), tracked.batch.value.to_pylist(), strict=True)
    ]
    return rows, errors


def test_records_with_other_schemas_are_other_batches_in_order() -> None:
    errors = RecordErrors(TOLERANT, "c", 0)
    pipeline = Pipeline(pipeline_settings({}, WORKER))
    batches = list(pipeline.from_records(raw("a", "b", "{}", None, "c"), errors))
    assert [each.batch.value.to_pylist() for each in batches] == [["a", "b"], ["{}"], [None, "c"]]
    assert [each.batch.value_schema for each in batches] == [STRING, None, STRING]


def test_each_topic_is_converted_on_its_own() -> None:
    batch = pa.concat_batches([raw("a", topic="t"), raw("b", topic="u"), raw("c", topic="t")])
    rows, _ = written(batch)
    assert rows == [(0, "a"), (1, "b"), (2, "c")]


def test_a_failed_record_is_taken_out_with_its_original_bytes() -> None:
    rows, errors = written(raw("a", "poison", "b"))
    assert rows == [(0, "a"), (2, "b")]
    (failed,) = errors.failed
    assert (failed.topic, failed.partition, failed.offset) == ("t", 0, 101)
    assert (failed.value, failed.stage) == (b"poison", Stage.VALUE_CONVERTER)
    assert errors.summary.failed == 1
    assert errors.summary.lines == [
        "Error encountered in task c-0. Executing stage 'VALUE_CONVERTER' with class "
        f"'{MODULE}:TextConverter'. org.apache.kafka.connect.errors.DataException: "
        "Poison is not text."
    ]


def test_without_tolerance_a_failed_record_raises() -> None:
    with pytest.raises(ToleranceExceededError, match=r"VALUE_CONVERTER.*Poison is not text"):
        written(raw("a", "poison"), settings=ErrorSettings())


def test_transforms_keep_the_order_of_rows_and_drop_some() -> None:
    rows, _ = written(raw("a", "drop", "b"), UPPER)
    assert rows == [(0, "A"), (2, "B")]


@pytest.mark.parametrize(
    ("negate", "expected"), [("false", ["A1", "b", "A2"]), ("true", ["a1", "B", "a2"])]
)
def test_a_predicate_selects_records_and_order_is_kept(negate: str, expected: list[str]) -> None:
    predicate = {
        "transforms.up.predicate": "p",
        "transforms.up.negate": negate,
        "predicates": "p",
        "predicates.p.type": f"{MODULE}:StartsWith",
        "predicates.p.text": "a",
    }
    rows, _ = written(raw("a1", "b", "a2"), UPPER | predicate)
    assert [value for _, value in rows] == expected


def test_a_predicate_keeps_the_order_of_records_with_other_schemas() -> None:
    predicate = {
        "transforms.up.predicate": "p",
        "predicates.p.type": f"{MODULE}:StartsWith",
        "predicates.p.text": "{",
    }
    rows, _ = written(raw("a", "{x", "b", "{y"), UPPER | predicate)
    assert rows == [(0, "a"), (1, "{X"), (2, "b"), (3, "{Y")]


def test_transforms_are_applied_in_order() -> None:
    config = {
        "transforms": "one, two",
        "transforms.one.type": f"{MODULE}:Upper",
        "transforms.one.prefix": "1",
        "transforms.two.type": f"{MODULE}:Upper",
        "transforms.two.prefix": "2",
    }
    assert written(raw("a"), config)[0] == [(0, "21A")]


def test_a_transform_that_fails_as_a_whole_fails_only_the_record_at_fault() -> None:
    rows, errors = written(raw("a", "b", "bug", "c"), UPPER)
    assert [value for _, value in rows] == ["A", "B", "C"]
    assert [failed.offset for failed in errors.failed] == [102]
    assert errors.failed[0].stage is Stage.TRANSFORMATION


def test_retriable_errors_are_retried_within_the_timeout() -> None:
    settings = error_settings({"errors.retry.timeout": "10000", "errors.retry.delay.max.ms": "1"})
    rows, _ = written(
        raw("a"),
        {"value.converter": f"{MODULE}:TextConverter", "value.converter.failures": "2"},
        settings,
    )
    assert rows == [(0, "a")]
    with pytest.raises(RetriableError):
        written(
            raw("a"),
            {"value.converter": f"{MODULE}:TextConverter", "value.converter.failures": "1"},
        )


def test_records_of_a_source_become_bytes_by_topic() -> None:
    errors = RecordErrors(TOLERANT, "c", 0)
    config = {"transforms": "up", "transforms.up.type": f"{MODULE}:Upper"}
    pipeline = Pipeline(pipeline_settings(config, WORKER))
    values = pa.array(["a", "b", "drop"])
    batch = source_batch("t", STRING, values, STRING, values)
    encoded = list(pipeline.to_records(batch, errors))
    assert [topic for topic, _ in encoded] == ["t"]
    assert encoded[0][1].column("value").to_pylist() == [b"A", b"B"]
    assert encoded[0][1].column("key").to_pylist() == [b"a", b"b"]


def test_a_failed_record_of_a_source_is_json() -> None:
    errors = RecordErrors(TOLERANT, "c", 0)
    pipeline = Pipeline(pipeline_settings({}, WORKER))
    values = pa.array(["a", "poison"])
    encoded = list(pipeline.to_records(source_batch("t", STRING, values), errors))
    assert encoded[0][1].column("value").to_pylist() == [b"a"]
    (failed,) = errors.failed
    assert (failed.topic, failed.value, failed.partition) == ("t", b'"poison"', None)


def test_a_converter_of_the_connector_has_none_of_the_workers_settings() -> None:
    worker = WORKER | {"value.converter.a": "1", "key.converter.b": "2"}
    settings = pipeline_settings({"value.converter": "X", "value.converter.c": "3"}, worker)
    assert (settings.value.class_name, settings.value.settings) == ("X", {"c": "3"})
    assert settings.key.settings == {"b": "2"}


def test_a_transform_without_a_type_is_an_error() -> None:
    with pytest.raises(InvalidConfigError, match=r"transforms\.up\.type"):
        pipeline_settings({"transforms": "up"}, WORKER)
