"""The work of one task of a sink: fetch ranges, convert, transform, write.

Nothing is committed here. If anything fails, the writer is aborted, and the ranges are written
again from the start, here or by a later item.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.client.lru_cache import LruCache
from barnabas.connect.connector import (
    SinkConnector,
    SinkWriter,
    TopicPartition,
    WriteContext,
    WriteReport,
)
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.execution.dead_letters import produce_dead_letters
from barnabas.connect.execution.pipeline import pipeline_for
from barnabas.connect.execution.put_errors import PutErrorReporter
from barnabas.connect.execution.record_errors import ErrorSummary, RecordErrors, Retries
from barnabas.connect.execution.settings import ErrorSettings, PipelineSettings
from barnabas.spark.runtime.work import WorkContext
from barnabas.spark.sink.producer_pool import plain_producer
from barnabas.spark.sink.task import DeliveryError
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CACHED = 64

FETCH_TIMEOUT_MS = 120_000
"""How long a partition may make no progress."""


@dataclass(slots=True, frozen=True)
class SinkTaskSettings:
    """What all tasks of a sink have in common."""

    connector: type[SinkConnector]
    config: Mapping[str, str]
    pipeline: PipelineSettings
    errors: ErrorSettings
    consumer: Mapping[str, str]
    producer: Mapping[str, str]
    """For the dead letter queue."""
    fails_on_data_loss: bool = False


@dataclass(slots=True, frozen=True)
class SinkResult:
    report: WriteReport
    records: int
    errors: ErrorSummary


@dataclass(slots=True, frozen=True)
class SinkItem:
    settings: SinkTaskSettings
    task: int
    ranges: tuple[OffsetRange, ...]

    def __call__(self, context: WorkContext) -> SinkResult:
        """Raises RetriableError if the target is still down after `errors.retry.timeout`."""
        retries = Retries(self.settings.errors)
        while True:
            try:
                return self._write(context.attempt + retries.attempts)
            except RetriableError:
                if not retries.wait():
                    raise

    def _write(self, attempt: int) -> SinkResult:
        settings = self.settings
        connector = configured(settings.connector, settings.config)
        errors = RecordErrors(settings.errors, connector.name, self.task)
        reporter = PutErrorReporter(errors, self.ranges, self._read)
        ranges = {(each.topic, each.partition): (each.start, each.end) for each in self.ranges}
        writer = connector.open(WriteContext(connector.name, self.task, attempt, ranges, reporter))
        try:
            records = self._write_batches(writer, errors, reporter)
            report = writer.close()
            _check(report, self.ranges)
            self._send_dead_letters(errors)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error is the one to report
                writer.abort()
            raise
        return SinkResult(report, records, errors.summary)

    def _write_batches(
        self, writer: SinkWriter, errors: RecordErrors, reporter: PutErrorReporter
    ) -> int:
        pipeline = pipeline_for(self.settings.pipeline)
        records = 0
        for raw in self._read(_not_written(self.ranges, writer.first_offsets())):
            for tracked in pipeline.from_records(raw, errors):
                reporter.on_batch(raw, tracked)
                writer.write(tracked.batch)
            records += raw.num_rows
        return records

    def _read(self, ranges: tuple[OffsetRange, ...]) -> Iterator[pa.RecordBatch]:
        from barnabas.spark.source.task import read

        if not ranges:
            return iter(())
        policy = DataLossPolicy(self.settings.fails_on_data_loss, FETCH_TIMEOUT_MS)
        return read(ranges, self.settings.consumer, policy)

    def _send_dead_letters(self, errors: RecordErrors) -> None:
        """The offsets are committed after this has returned, so that no record is lost."""
        if not errors.failed:
            return
        producer = plain_producer(self.settings.producer)
        lost: list[object] = []

        def on_delivery(error: object, _: object) -> None:
            if error is not None:
                lost.append(error)

        produce_dead_letters(
            producer, errors.settings, errors.connector, self.task, errors.failed, on_delivery
        )
        producer.flush()
        if lost:
            topic = errors.settings.dead_letter_topic
            raise DeliveryError(f"{len(lost)} dead letters were not written to {topic}: {lost[0]}")


_connectors: LruCache[tuple[type, frozenset[tuple[str, str]]], SinkConnector] = LruCache(MAX_CACHED)


def configured(kind: type[SinkConnector], config: Mapping[str, str]) -> SinkConnector:
    """Returns this process's connector, configured."""

    def create() -> SinkConnector:
        connector = kind()
        connector.configure(config)
        return connector

    return _connectors.get_or_create((kind, frozenset(config.items())), create)


def _not_written(
    ranges: tuple[OffsetRange, ...], first_offsets: Mapping[TopicPartition, int]
) -> tuple[OffsetRange, ...]:
    starts = (
        max(each.start, first_offsets.get((each.topic, each.partition), 0)) for each in ranges
    )
    return tuple(
        replace(each, start=start)
        for each, start in zip(ranges, starts, strict=True)
        if start < each.end
    )


def _check(report: WriteReport, ranges: tuple[OffsetRange, ...]) -> None:
    """Raises ConnectError unless the report has a position of each range, which is within it."""
    for each in ranges:
        position = report.positions.get((each.topic, each.partition))
        if position is None or not each.start <= position <= each.end:
            raise ConnectError(
                f"The writer was opened for {each.topic}-{each.partition}, offsets {each.start} to "
                f"{each.end}, and reports position {position}: this is an error of the connector."
            )
