"""The writers that Spark calls: `write` in Python workers, `commit` and `abort` for the driver."""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from barnabas.client.errors import KafkaError, KafkaException, error_in
from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink import protocol
from barnabas.spark.sink.options import Guarantee, SinkOptions, read_options
from barnabas.spark.sink.protocol import TaskReport, WriteJob
from barnabas.spark.sink.row_encoder import RowShape, shape_of
from barnabas.spark.sink.task import write_at_least_once, write_once
from barnabas.spark.sink.transaction_log import (
    BrokerTransactionLog,
    require_topic,
    transaction_log_for,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

log = logging.getLogger("barnabas.spark")


@dataclass(slots=True, frozen=True)
class TaskMessage(WriterCommitMessage):
    """What a task tells the driver: the driver learns from it for which query it is called."""

    job: WriteJob
    report: TaskReport


@dataclass(slots=True, frozen=True)
class EmptyMessage(WriterCommitMessage):
    """What a task tells that has nothing left to be committed."""

    rows: int


Messages = Sequence[WriterCommitMessage | None]


def batch_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceArrowWriter:
    if overwrite:
        raise OptionError("A topic is written to with mode('append'): it is never overwritten.")
    told = read_options(options)
    return TopicBatchWriter(told, _shape(schema, told))


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    told = read_options(options)
    if told.application is not None:
        raise OptionError("txnAppId and txnVersion are for batches: a streaming query has its own.")
    return TopicStreamWriter(told, _shape(schema, told))


class TopicBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape
        save = uuid.uuid4().hex
        prefix = f"{options.id_prefix}-{options.application or save}"
        in_order = options.application is None
        self._job = WriteJob(prefix, save, options.version or 0, options.topic, in_order)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._shape, self._job, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)
        self._forget()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._options, messages)
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            # Nobody comes after this job who would find what its tasks have left.
            _sweep(self._ledger, self._job)
        self._forget()

    def _forget(self) -> None:
        """What was decided, where nobody can save the same again."""
        is_unnamed = self._options.application is None
        if is_unnamed and self._options.guarantee is Guarantee.EXACTLY_ONCE:
            self._ledger.forget()

    @property
    def _ledger(self) -> BrokerTransactionLog:
        return transaction_log_for(self._options.conf, self._job.prefix)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, shape: RowShape) -> None:
        self._options = options
        self._shape = shape

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._shape, _micro_batch(self._options), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _commit(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _abort(self._options, messages)


def _shape(schema: StructType, options: SinkOptions) -> RowShape:
    if options.topic is not None:
        require_topic(options.conf, options.topic)
    return shape_of(schema, options)


# In a Python worker


def _write(
    options: SinkOptions, shape: RowShape, job: WriteJob, batches: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return EmptyMessage(write_at_least_once(options.conf, shape, batches))
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    task, attempt = context.partitionId(), context.attemptNumber()
    return TaskMessage(job, write_once(job, task, attempt, options.conf, shape, batches))


def _micro_batch(options: SinkOptions) -> WriteJob:
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    # The run is not always told by its own name, but is the group of all its jobs.
    told = map(context.getLocalProperty, ("sql.streaming.runId", "spark.jobGroup.id"))
    run = next((each for each in told if each is not None), None)
    if query is None or run is None or batch is None:
        raise RuntimeError("Spark does not tell the task for which query and batch it writes.")
    return WriteJob(f"{options.id_prefix}-{query}", run, int(batch), options.topic)


# For the driver


def _commit(options: SinkOptions, messages: Messages) -> None:
    job, reports = _told(messages)
    if job is None:
        return
    ledger = transaction_log_for(options.conf, job.prefix)
    try:
        is_decided = protocol.commit(ledger, job, reports)
    except KafkaException as failure:
        if error_in(failure) != KafkaError._FENCED:
            raise
        # Another process of this driver has committed a batch since this one did; or a driver
        # that is thought dead has. Who takes over now finds out.
        ledger.reset()
        is_decided = protocol.commit(ledger, job, reports)
    if not is_decided:
        return
    if ledger.is_sweeping_due(job.run, time.monotonic()) or any(it.attempt for it in reports):
        _sweep(ledger, job)


def _abort(options: SinkOptions, messages: Messages) -> None:
    job, reports = _told(messages)
    if job is not None:
        ledger = transaction_log_for(options.conf, job.prefix)
        ledger.reset()  # a decision that is still under way must not come after this
        protocol.abort(ledger, job, reports)


def _sweep(ledger: BrokerTransactionLog, job: WriteJob) -> None:
    """As well as it can be done now: what counts is committed."""
    try:
        left = protocol.sweep(ledger)
    except KafkaException as failure:
        log.warning("%s: dead attempts may have left transactions open: %s", job.prefix, failure)
        return
    if left:
        ids = [each.transactional_id for each in left]
        log.warning("%s: aborted what dead attempts had left open: %s", job.prefix, ids)


def _told(messages: Messages) -> tuple[WriteJob | None, list[TaskReport]]:
    told = [each for each in messages if isinstance(each, TaskMessage)]
    return (told[0].job if told else None), [each.report for each in told]
