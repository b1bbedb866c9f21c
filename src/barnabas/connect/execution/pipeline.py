"""Converters and transforms of one connector, over batches.

    sink      bytes -> converters -> transforms -> what the connector writes
    source    what the connector has read -> transforms -> converters -> rows for a producer

Records that fail are taken out and passed to `RecordErrors`; the others go on, in order.
"""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.client.lru_cache import LruCache
from barnabas.connect.converters.converter import Conversion, ConvertedBytes, Converter, RowError
from barnabas.connect.data.batch import ConnectBatch, headers_type
from barnabas.connect.errors import DataError, RetriableError
from barnabas.connect.execution.record_errors import RecordErrors, Stage
from barnabas.connect.execution.settings import PipelineSettings
from barnabas.connect.execution.tracked_batch import TrackedBatch, merged, row_numbers, without_rows
from barnabas.connect.execution.transform_step import TransformStep
from barnabas.connect.plugins import find_converter, find_header_converter

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CACHED = 64

_pipelines: LruCache[bytes, Pipeline] = LruCache(MAX_CACHED)


def pipeline_for(settings: PipelineSettings) -> Pipeline:
    """Returns this process's plugins for these settings."""
    return _pipelines.get_or_create(pickle.dumps(settings), lambda: Pipeline(settings))


class Pipeline:
    """The plugins of a connector. Raises what they raise if settings are invalid."""

    def __init__(self, settings: PipelineSettings) -> None:
        self._settings = settings
        self._key = _converter(settings.key.class_name, settings.key.settings, is_key=True)
        self._value = _converter(settings.value.class_name, settings.value.settings, is_key=False)
        # Headers stay bytes between a topic and a connector, so its settings are only checked.
        find_header_converter(settings.header.class_name)().configure(settings.header.settings)
        self._steps = [TransformStep(each) for each in settings.transforms]

    # Sinks

    def from_records(self, raw: pa.RecordBatch, errors: RecordErrors) -> Iterator[TrackedBatch]:
        """Yields what the connector writes; `rows` are indices of `raw`."""
        originals = _taking(raw)
        for topic, start, end in _runs_of(raw.column("topic")):
            for tracked in self._converted(topic, raw, start, end, errors):
                yield from self._transformed(tracked, errors, originals)

    def _converted(
        self, topic: str, raw: pa.RecordBatch, start: int, end: int, errors: RecordErrors
    ) -> Iterator[TrackedBatch]:
        part = raw.slice(start, end - start)
        key = self._to_connect(
            self._key, topic, part.column("key"), errors, Stage.KEY_CONVERTER, raw, start
        )
        value = self._to_connect(
            self._value, topic, part.column("value"), errors, Stage.VALUE_CONVERTER, raw, start
        )
        failed = {error.row for error in (*key.errors, *value.errors)}
        for tracked in _joined(part, key, value, start):
            kept = without_rows(tracked, {row + start for row in failed})
            if len(kept.batch):
                yield kept

    def _to_connect(
        self,
        converter: Converter,
        topic: str,
        payloads: pa.Array,
        errors: RecordErrors,
        stage: Stage,
        raw: pa.RecordBatch,
        start: int,
    ) -> Conversion:
        convert = functools.partial(converter.to_connect, topic, payloads)
        try:
            conversion = errors.retry(convert)
        except RetriableError:
            raise
        except Exception as error:
            conversion = Conversion([], [RowError(row, error) for row in range(len(payloads))])
        failed = [RowError(each.row + start, each.error) for each in conversion.errors]
        errors.on_errors(stage, self._class_name(stage), failed, _taking(raw))
        return conversion

    # Sources

    def to_records(
        self, batch: ConnectBatch, errors: RecordErrors
    ) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields rows for the producer by topic: value, key, and partition, timestamp, headers."""
        import pyarrow as pa

        def originals(rows: Sequence[int]) -> pa.RecordBatch:
            return _as_json(batch.take(pa.array(rows, pa.int64())))

        start = TrackedBatch(batch, row_numbers(0, len(batch)))
        for tracked in self._transformed(start, errors, originals):
            for topic, part in _by_topic(tracked):
                encoded = self._encoded(topic, part, errors, originals)
                if encoded.num_rows:
                    yield topic, encoded

    def _encoded(
        self,
        topic: str,
        tracked: TrackedBatch,
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> pa.RecordBatch:
        import pyarrow as pa

        batch = tracked.batch
        failed: set[int] = set()

        def encode(converter: Converter, stage: Stage, schema: Any, values: pa.Array) -> pa.Array:
            convert = functools.partial(converter.from_connect, topic, schema, values)
            try:
                converted = errors.retry(convert)
            except RetriableError:
                raise
            except Exception as error:
                rows = [RowError(row, error) for row in range(len(values))]
                converted = ConvertedBytes(pa.nulls(len(values), pa.binary()), rows)
            failed.update(each.row for each in converted.errors)
            errors.on_errors(
                stage, self._class_name(stage), tracked.original_errors(converted.errors), originals
            )
            return converted.payloads

        columns = {
            "key": encode(self._key, Stage.KEY_CONVERTER, batch.key_schema, batch.key),
            "value": encode(self._value, Stage.VALUE_CONVERTER, batch.value_schema, batch.value),
        }
        for name in ("partition", "timestamp", "headers"):
            column = getattr(batch, name)
            if column.null_count < len(column):
                columns[name] = column
        encoded = pa.RecordBatch.from_pydict(columns)
        if failed:
            encoded = encoded.filter(pa.array([row not in failed for row in range(len(batch))]))
        return encoded

    # Both

    def _transformed(
        self,
        tracked: TrackedBatch,
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> Iterator[TrackedBatch]:
        batches = [tracked]
        for step in self._steps:
            batches = [
                result for each in batches for result in merged(step.apply(each, errors, originals))
            ]
        return iter([each for each in batches if len(each.batch)])

    def _class_name(self, stage: Stage) -> str:
        settings = self._settings
        return (
            settings.key.class_name if stage is Stage.KEY_CONVERTER else settings.value.class_name
        )


def _converter(class_name: str, settings: Any, *, is_key: bool) -> Converter:
    converter = find_converter(class_name)()
    converter.configure(settings, is_key=is_key)
    return converter


def _joined(
    part: pa.RecordBatch, key: Conversion, value: Conversion, start: int
) -> Iterator[TrackedBatch]:
    """Yields the rows of each run of keys that is also within a run of values."""
    import pyarrow as pa

    for key_run in key.runs:
        for value_run in value.runs:
            first = max(key_run.start, value_run.start)
            end = min(key_run.start + len(key_run.values), value_run.start + len(value_run.values))
            if first >= end:
                continue
            rows = part.slice(first, end - first)
            headers = rows.column("headers")
            batch = ConnectBatch(
                topic=rows.column("topic"),
                partition=rows.column("partition"),
                offset=rows.column("offset"),
                timestamp=rows.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False),
                key_schema=key_run.schema,
                key=key_run.values.slice(first - key_run.start, end - first),
                value_schema=value_run.schema,
                value=value_run.values.slice(first - value_run.start, end - first),
                headers=headers if headers.type == headers_type() else headers.cast(headers_type()),
            )
            yield TrackedBatch(batch, row_numbers(start + first, start + end))


def _taking(raw: pa.RecordBatch) -> Callable[[Sequence[int]], pa.RecordBatch]:
    import pyarrow as pa

    return lambda rows: raw.take(pa.array(rows, pa.int64()))


def _runs_of(topics: pa.Array) -> list[tuple[str, int, int]]:
    """Returns topic, start and end of contiguous rows of one topic."""
    import pyarrow.compute as pc

    if not len(topics):
        return []
    runs = pc.run_end_encode(topics)
    ends = runs.run_ends.to_pylist()
    return list(zip(runs.values.to_pylist(), [0, *ends[:-1]], ends, strict=True))


def _by_topic(tracked: TrackedBatch) -> Iterator[tuple[str, TrackedBatch]]:
    """Yields the rows of each topic, in their order."""
    import pyarrow.compute as pc

    topics = tracked.batch.topic
    if topics.null_count:
        raise DataError("A record has no topic.")
    unique = topics.unique().to_pylist()
    if len(unique) == 1:
        yield unique[0], tracked
        return
    for topic in unique:
        yield topic, tracked.filter(pc.equal(topics, topic))


def _as_json(batch: ConnectBatch) -> pa.RecordBatch:
    """Returns records of a source, which have no bytes, as JSON without schema."""
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {
            "topic": batch.topic,
            "partition": batch.partition,
            "offset": batch.offset,
            "timestamp": batch.timestamp,
            "key": pa.array(map(_json, batch.key.to_pylist()), pa.binary()),
            "value": pa.array(map(_json, batch.value.to_pylist()), pa.binary()),
            "headers": batch.headers,
        }
    )


def _json(value: Any) -> bytes | None:
    if value is None:
        return None
    return json.dumps(value, default=_text, separators=(",", ":")).encode()


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
