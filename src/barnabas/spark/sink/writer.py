"""The writers that Spark calls: `write` in Python workers, `commit` and `abort` in the driver."""

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
from barnabas.spark.sink.row_encoder import RowLayout, resolve_layout
from barnabas.spark.sink.task import write_at_least_once, write_exactly_once
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
    """The report of a task, with its job: `commit` learns from it which query it is called for."""

    job: WriteJob
    report: TaskReport


@dataclass(slots=True, frozen=True)
class EmptyMessage(WriterCommitMessage):
    """The message of a task without a transaction to commit."""

    rows: int


Messages = Sequence[WriterCommitMessage | None]


def batch_writer(
    options: Mapping[str, str], schema: StructType, overwrite: bool
) -> DataSourceArrowWriter:
    if overwrite:
        raise OptionError("A topic is written to with mode('append'): it is never overwritten.")
    parsed = read_options(options)
    return TopicBatchWriter(parsed, _layout(schema, parsed))


def stream_writer(options: Mapping[str, str], schema: StructType) -> DataSourceStreamArrowWriter:
    parsed = read_options(options)
    if parsed.application is not None:
        raise OptionError("txnAppId and txnVersion are for batches: a streaming query has its own.")
    return TopicStreamWriter(parsed, _layout(schema, parsed))


class TopicBatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, layout: RowLayout) -> None:
        self._options = options
        self._layout = layout
        save = uuid.uuid4().hex
        prefix = f"{options.id_prefix}-{options.application or save}"
        in_order = options.application is None
        self._job = WriteJob(prefix, save, options.version or 0, options.topic, in_order)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._layout, self._job, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        _commit(self._options, messages)
        log_skipped(messages)
        self._delete_decision()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        _abort(self._options, messages)
        if self._options.guarantee is Guarantee.EXACTLY_ONCE:
            # No later batch of this job would find the open transactions of its tasks.
            _abort_orphans(self._transaction_log, self._job)
        self._delete_decision()

    def _delete_decision(self) -> None:
        """Delete the decision of a save that cannot be repeated because it has no txnAppId."""
        is_unrepeatable = self._options.application is None
        if is_unrepeatable and self._options.guarantee is Guarantee.EXACTLY_ONCE:
            self._transaction_log.delete_group()

    @property
    def _transaction_log(self) -> BrokerTransactionLog:
        return transaction_log_for(self._options.conf, self._job.prefix)


class TopicStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, layout: RowLayout) -> None:
        self._options = options
        self._layout = layout

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _write(self._options, self._layout, _micro_batch(self._options), iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _commit(self._options, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        _abort(self._options, messages)


def _layout(schema: StructType, options: SinkOptions) -> RowLayout:
    if options.topic is not None:
        require_topic(options.conf, options.topic)
    return resolve_layout(schema, options)


# In a Python worker


def _write(
    options: SinkOptions, layout: RowLayout, job: WriteJob, batches: Iterator[pa.RecordBatch]
) -> WriterCommitMessage:
    if options.guarantee is Guarantee.AT_LEAST_ONCE:
        return EmptyMessage(write_at_least_once(options.conf, layout, batches))
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    task, attempt = context.partitionId(), context.attemptNumber()
    return TaskMessage(job, write_exactly_once(job, task, attempt, options.conf, layout, batches))


def _micro_batch(options: SinkOptions) -> WriteJob:
    context = TaskContext.get()
    assert context is not None, "Spark calls it in a task"
    query = context.getLocalProperty("sql.streaming.queryId")
    batch = context.getLocalProperty("streaming.sql.batchId")
    # Spark does not always set the run id, but the job group of a query is its run id.
    names = ("sql.streaming.runId", "spark.jobGroup.id")
    run = next(filter(None, map(context.getLocalProperty, names)), None)
    if query is None or run is None or batch is None:
        raise RuntimeError("Spark has not set the query and batch of the task.")
    return WriteJob(f"{options.id_prefix}-{query}", run, int(batch), options.topic)


# For the driver


def _commit(options: SinkOptions, messages: Messages) -> None:
    job, reports = _job_and_reports(messages)
    if job is None:
        return
    transaction_log = transaction_log_for(options.conf, job.prefix)
    try:
        is_decided = protocol.commit(transaction_log, job, reports)
    except KafkaException as error:
        if error_in(error) != KafkaError._FENCED:
            raise
        # Another process of this driver has committed a batch since this one did, or an old driver
        # is still running. Fencing again and reading the last decision tells which.
        transaction_log.reset()
        is_decided = protocol.commit(transaction_log, job, reports)
    if not is_decided:
        return
    if transaction_log.is_orphan_check_due(job.run, time.monotonic()) or any(
        report.attempt for report in reports
    ):
        _abort_orphans(transaction_log, job)


def log_skipped(messages: Messages) -> None:
    """Logs that no task of a save has written rows, because its version was decided before."""
    job, reports = _job_and_reports(messages)
    if job is None or job.in_order:
        return
    if all(report.is_decided and report.transaction is None for report in reports):
        log.warning(
            "%s: version %d is not written: it, or a later one, was written before. If these rows "
            "are new, use another txnAppId, for instance after you have deleted a checkpoint.",
            job.prefix,
            job.batch,
        )


def _abort(options: SinkOptions, messages: Messages) -> None:
    job, reports = _job_and_reports(messages)
    if job is not None:
        transaction_log = transaction_log_for(options.conf, job.prefix)
        transaction_log.reset()  # a decision in flight must fail once this has fenced
        protocol.abort(transaction_log, job, reports)


def _abort_orphans(transaction_log: BrokerTransactionLog, job: WriteJob) -> None:
    """Abort orphans if the brokers respond; the rows of the batch are committed already."""
    try:
        orphans = protocol.abort_orphans(transaction_log)
    except KafkaException as error:
        log.warning("%s: failed attempts may have open transactions: %s", job.prefix, error)
        return
    if orphans:
        ids = [orphan.transactional_id for orphan in orphans]
        log.warning("%s: aborted open transactions of failed attempts: %s", job.prefix, ids)


def _job_and_reports(messages: Messages) -> tuple[WriteJob | None, list[TaskReport]]:
    task_messages = [message for message in messages if isinstance(message, TaskMessage)]
    job = task_messages[0].job if task_messages else None
    return job, [message.report for message in task_messages]
