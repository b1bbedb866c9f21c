"""Shows what a connector would write, without writing it and without Spark.

    preview = preview_of(config, worker, 10)

A source reads its partitions from their start, a sink the first records of its topics. The rows
pass through converters and transforms; those that fail are shown with the stage and the error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.connector import Position, SinkConnector, SourceConnector
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import ConnectError
from barnabas.connect.execution.first_records import first_records
from barnabas.connect.execution.pipeline import Pipeline
from barnabas.connect.execution.record_errors import (
    FailedRecord,
    RecordErrors,
    exception_class,
)
from barnabas.connect.execution.settings import (
    ErrorSettings,
    PipelineSettings,
    PluginSettings,
    client_settings,
    pipeline_settings,
)
from barnabas.connect.execution.sink_work import sink_topics
from barnabas.connect.plugins import find_connector, find_converter
from barnabas.connect.worker_config import WorkerConfig

if TYPE_CHECKING:
    import pyarrow as pa

MAX_IDLE_S = 2.0
"""How long to wait for rows of a source that has fewer than wanted."""

_POLL_S = 0.05
_COLLECTED = ErrorSettings(is_tolerant=True, dead_letter_topic="none is written to")
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_REGISTERS = "auto.register.schemas"


@dataclass(slots=True, frozen=True)
class PreviewRow:
    """A record as it would be written: for a source to its topic, for a sink to its target."""

    topic: str
    partition: int | None
    offset: int | None
    key: Any
    value: Any
    headers: Mapping[str, str]


@dataclass(slots=True, frozen=True)
class PreviewError:
    """A record that fails."""

    topic: str | None
    partition: int | None
    offset: int | None
    stage: str
    class_name: str
    error: str
    message: str
    value: str | None


@dataclass(slots=True)
class Preview:
    rows: list[PreviewRow] = field(default_factory=list)
    errors: list[PreviewError] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not done."""


def preview_of(config: Mapping[str, str], worker: WorkerConfig, count: int) -> Preview:
    """Returns about the first `count` records. The settings have been validated.

    Raises ConnectError, and what a connector raises.
    """
    connector = find_connector(config.get("connector.class", ""), config)()
    settings = pipeline_settings(config, worker.originals)
    errors = RecordErrors(_COLLECTED, config.get("name", ""), 0)
    preview = Preview()
    if isinstance(connector, SinkConnector):
        _preview_sink(preview, Pipeline(settings), errors, config, worker, count)
    else:
        if getattr(connector, "runs_own_query", False):
            raise ConnectError(
                "The settings are valid, but a Spark format is read by Spark only: create the "
                "connector to see its rows."
            )
        assert isinstance(connector, SourceConnector)
        shown = _without_registration(settings, preview)
        _preview_source(preview, connector, Pipeline(shown), errors, config, count)
    preview.errors = [_error_of(failed) for failed in errors.failed[:count]]
    return preview


# Sinks


def _preview_sink(
    preview: Preview,
    pipeline: Pipeline,
    errors: RecordErrors,
    config: Mapping[str, str],
    worker: WorkerConfig,
    count: int,
) -> None:
    consumer = client_settings("consumer", config, worker.client("consumer"))
    for raw in first_records(consumer, sink_topics(config), count):
        for tracked in pipeline.from_records(raw, errors):
            preview.rows += _rows_of(tracked.batch)


def _rows_of(batch: ConnectBatch) -> Iterator[PreviewRow]:
    columns = (batch.topic, batch.partition, batch.offset, batch.key, batch.value, batch.headers)
    for topic, partition, offset, key, value, headers in zip(
        *(column.to_pylist() for column in columns), strict=True
    ):
        yield PreviewRow(topic, partition, offset, key, value, _headers(headers))


# Sources


def _preview_source(
    preview: Preview,
    connector: SourceConnector,
    pipeline: Pipeline,
    errors: RecordErrors,
    config: Mapping[str, str],
    count: int,
) -> None:
    connector.configure(config)
    connector.start()
    try:
        for batch in _batches(connector, count):
            for topic, encoded in pipeline.to_records(batch, errors):
                preview.rows += _encoded_rows(topic, encoded)
    finally:
        connector.stop()
    del preview.rows[count:]


def _batches(connector: SourceConnector, count: int) -> Iterator[ConnectBatch]:
    """Yields rows of all partitions by turns, until there are enough or no more for a while."""
    idle_s = min(MAX_IDLE_S, 2 * connector.poll_interval_ms / 1000)
    deadline_s = time.monotonic() + idle_s
    positions: dict[str, Position] = {}
    while count > 0 and time.monotonic() < deadline_s:
        rows = 0
        for partition in connector.partitions():
            key = json.dumps(partition, sort_keys=True)
            if rows >= count or not connector.has_new(partition, positions.get(key)):
                continue
            for batch in connector.read(partition, positions.get(key), count - rows):
                positions[key] = batch.position
                rows += len(batch.records)
                yield batch.records.slice(0, count)
                if rows >= count:
                    break
        count -= rows
        if rows:
            deadline_s = time.monotonic() + idle_s
        else:
            time.sleep(_POLL_S)


def _encoded_rows(topic: str, encoded: pa.RecordBatch) -> Iterator[PreviewRow]:
    columns: dict[str, list[Any]] = {
        name: encoded.column(name).to_pylist()
        if name in encoded.schema.names
        else [None] * encoded.num_rows
        for name in ("partition", "key", "value", "headers")
    }
    for partition, key, value, headers in zip(*columns.values(), strict=True):
        yield PreviewRow(topic, partition, None, _text(key), _text(value), _headers(headers))


def _without_registration(settings: PipelineSettings, preview: Preview) -> PipelineSettings:
    """Returns settings whose converters register no schemas."""
    return replace(
        settings,
        key=_not_registering(settings.key, "key.converter", preview),
        value=_not_registering(settings.value, "value.converter", preview),
    )


def _not_registering(plugin: PluginSettings, name: str, preview: Preview) -> PluginSettings:
    config_def: ConfigDef = find_converter(plugin.class_name).config_def()
    if _REGISTERS not in config_def:
        return plugin
    preview.notes.append(
        f"{name} is not run, because it would register schemas: JSON is shown instead"
    )
    return PluginSettings(_JSON, {"schemas.enable": "false"})


# Both


def _error_of(failed: FailedRecord) -> PreviewError:
    return PreviewError(
        failed.topic,
        failed.partition,
        failed.offset,
        str(failed.stage),
        failed.class_name,
        exception_class(failed.error),
        str(failed.error),
        _text(failed.value),
    )


def _headers(headers: list[dict[str, Any]] | None) -> dict[str, str]:
    return {each["key"]: _text(each["value"]) or "" for each in headers or ()}


def _text(payload: bytes | None) -> str | None:
    """Returns text, or the hexadecimal digits of bytes that are none."""
    if payload is None:
        return None
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return f"0x{payload.hex()}"
