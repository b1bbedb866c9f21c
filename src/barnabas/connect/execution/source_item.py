"""The work of one task of a source: read, transform, convert, produce.

If the source writes exactly once, rows, dead letters and positions are written in one transaction
that stays open: the driver decides on it (`spark/sink/protocol.py`). Otherwise the driver stores
the positions when all rows are acknowledged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.client.errors import KafkaException
from barnabas.client.lru_cache import LruCache
from barnabas.client.producer import Producer
from barnabas.connect.connector import Partition, Position, SourceConnector
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.execution.dead_letters import produce_dead_letters
from barnabas.connect.execution.oversized import without_oversized
from barnabas.connect.execution.pipeline import pipeline_for
from barnabas.connect.execution.record_errors import ErrorSummary, RecordErrors
from barnabas.connect.execution.settings import ErrorSettings, PipelineSettings
from barnabas.connect.execution.topic_creation import TopicCreator, TopicGroup
from barnabas.connect.storage.java_json import encode_java_json
from barnabas.spark.runtime.work import WorkContext
from barnabas.spark.sink.commit_decision import TaskTransaction
from barnabas.spark.sink.producer_pool import (
    TransactionalProducerPool,
    TransactionalProducerSlot,
    plain_producer,
)
from barnabas.spark.sink.protocol import TaskReport, WriteJob
from barnabas.spark.sink.task import DeliveryError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CACHED = 64


@dataclass(slots=True, frozen=True)
class SourceTaskSettings:
    """What all tasks of a source have in common."""

    connector: type[SourceConnector]
    config: Mapping[str, str]
    pipeline: PipelineSettings
    errors: ErrorSettings
    producer: Mapping[str, str]
    admin: Mapping[str, str]
    topic_groups: tuple[TopicGroup, ...]
    offset_topic: str


@dataclass(slots=True, frozen=True)
class SourceRead:
    """A partition to read, from a position on."""

    partition: Partition
    position: Position | None
    offset_key: bytes
    """The key of its positions in the offset topic."""


@dataclass(slots=True, frozen=True)
class PartitionProgress:
    partition: Partition
    position: Position | None
    """After the last row; None if the source gave none."""
    rows: int

    @property
    def is_empty(self) -> bool:
        return not self.rows and self.position is None


@dataclass(slots=True, frozen=True)
class SourceResult:
    progress: tuple[PartitionProgress, ...]
    topics: tuple[str, ...]
    """Where rows were written."""
    errors: ErrorSummary
    written: TaskReport | None = None
    """The open transaction, if the source writes exactly once."""


@dataclass(slots=True, frozen=True)
class SourceItem:
    settings: SourceTaskSettings
    task: int
    reads: tuple[SourceRead, ...]
    max_rows: int
    job: WriteJob | None
    """None if the source does not write exactly once."""
    decided: frozenset[str] = frozenset()
    """The transactional ids of the last decision."""

    def __call__(self, context: WorkContext) -> SourceResult:
        if self.job is None:
            return self._write_at_least_once()
        return self._write_exactly_once(self.job, context.attempt)

    def _write_exactly_once(self, job: WriteJob, attempt: int) -> SourceResult:
        pool = _pool_for(self.settings.producer, job)
        slot = pool.acquire(job.batch, self.decided)
        try:
            writer = _RowWriter(self, _Begin(slot))
            result = writer.write_all(with_positions=True)
            written = None
            if writer.has_begun:
                rows = sum(each.rows for each in result.progress)
                written = TaskTransaction(self.task, rows, slot.prepare())
        except BaseException:
            with contextlib.suppress(KafkaException, RuntimeError):
                slot.abort()  # or the driver does, or the transaction timeout
            pool.discard(slot)
            raise
        pool.release(slot)
        report = TaskReport(self.task, attempt, False, written)
        return SourceResult(result.progress, result.topics, result.errors, report)

    def _write_at_least_once(self) -> SourceResult:
        producer = plain_producer(self.settings.producer)
        lost: list[object] = []

        def on_delivery(error: object, _: object) -> None:
            if error is not None:
                lost.append(error)

        writer = _RowWriter(self, lambda: producer, on_delivery)
        result = writer.write_all(with_positions=False)
        producer.flush()
        if lost:
            raise DeliveryError(f"Records were not delivered: {lost[0]}")
        return result


class _RowWriter:
    """Reads the partitions of an item and produces their rows."""

    def __init__(
        self,
        item: SourceItem,
        producer: Callable[[], Producer],
        on_delivery: Callable[[object, object], None] | None = None,
    ) -> None:
        self._item = item
        self._settings = settings = item.settings
        self._producer = producer
        self._on_delivery = on_delivery
        self._connector = _configured(settings.connector, settings.config)
        self._pipeline = pipeline_for(settings.pipeline)
        self._errors = RecordErrors(settings.errors, self._connector.name, item.task)
        self._creator = TopicCreator(settings.admin, settings.topic_groups)
        self._topics: dict[str, None] = {}
        self.has_begun = False
        """Whether anything was produced."""

    def write_all(self, *, with_positions: bool) -> SourceResult:
        item = self._item
        share = max(1, item.max_rows // len(item.reads))
        progress = tuple(self._write(each, share) for each in item.reads)
        if self._errors.failed:
            produce_dead_letters(
                self._begun(),
                self._settings.errors,
                self._connector.name,
                item.task,
                self._errors.failed,
                self._on_delivery,
            )
        if with_positions:
            for read, done in zip(item.reads, progress, strict=True):
                if done.position is not None:
                    value = encode_java_json(done.position)
                    self._begun().produce(
                        self._settings.offset_topic, key=read.offset_key, value=value
                    )
        return SourceResult(progress, tuple(self._topics), self._errors.summary)

    def _write(self, read: SourceRead, max_rows: int) -> PartitionProgress:
        position, rows = None, 0
        for batch in self._connector.read(read.partition, read.position, max_rows):
            for topic, encoded in self._encoded(batch.records):
                self._creator.ensure(topic)
                self._topics[topic] = None
                self._begun().produce_arrow(topic, encoded, self._on_delivery)
            position = batch.position
            rows += len(batch.records)
            if rows >= max_rows:
                break
        return PartitionProgress(
            read.partition, None if position == read.position else position, rows
        )

    def _encoded(self, records: ConnectBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        for topic, encoded in self._pipeline.to_records(records, self._errors):
            fitting = without_oversized(topic, encoded, self._settings.producer, self._errors)
            if fitting.num_rows:
                yield topic, fitting

    def _begun(self) -> Producer:
        self.has_begun = True
        return self._producer()


class _Begin:
    """Begins the transaction of a slot when it is first needed."""

    def __init__(self, slot: TransactionalProducerSlot) -> None:
        self._slot = slot
        self._producer: Producer | None = None

    def __call__(self) -> Producer:
        if self._producer is None:
            self._producer = self._slot.begin()
        return self._producer


_pools: LruCache[tuple[frozenset[tuple[str, str]], str, str], TransactionalProducerPool] = LruCache(
    MAX_CACHED, on_evict=TransactionalProducerPool.close
)
_connectors: LruCache[tuple[type, frozenset[tuple[str, str]]], SourceConnector] = LruCache(
    MAX_CACHED
)


def _pool_for(conf: Mapping[str, str], job: WriteJob) -> TransactionalProducerPool:
    return _pools.get_or_create(
        (frozenset(conf.items()), job.prefix, job.run),
        lambda: TransactionalProducerPool(conf, job.prefix),
    )


def _configured(kind: type[SourceConnector], config: Mapping[str, str]) -> SourceConnector:
    """Returns this process's connector, configured."""

    def create() -> SourceConnector:
        connector = kind()
        connector.configure(config)
        return connector

    return _connectors.get_or_create((kind, frozenset(config.items())), create)
