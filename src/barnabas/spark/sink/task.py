"""A task of the sink: writes its rows in a transaction, or without one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from barnabas.client.errors import KafkaException
from barnabas.client.lru_cache import LruCache
from barnabas.spark.sink import protocol
from barnabas.spark.sink.commit_decision import CommitDecision, TaskTransaction
from barnabas.spark.sink.producer_pool import TransactionalProducerSlot, plain_producer, pool_for
from barnabas.spark.sink.protocol import TaskReport, WriteJob
from barnabas.spark.sink.row_encoder import RowLayout
from barnabas.spark.sink.transaction_log import BrokerDecisionReader, require_topic

if TYPE_CHECKING:
    import pyarrow as pa


class DeliveryError(RuntimeError):
    """Records were not delivered."""


def write_exactly_once(
    job: WriteJob,
    task: int,
    attempt: int,
    conf: Mapping[str, str],
    layout: RowLayout,
    batches: Iterator[pa.RecordBatch],
) -> TaskReport:
    """Writes the rows in a transaction that stays open, unless the batch is already decided."""
    last = _decision_before_run(conf, job)
    plan = protocol.begin_task(BrokerDecisionReader(conf, job.prefix), last, job, task)
    is_decided = last is not None and last.batch >= job.batch
    written = None
    if plan.writes:
        transactions = () if last is None else last.transactions
        decided = {entry.prepared.transactional_id for entry in transactions}
        pool = pool_for(conf, job.prefix)
        slot = pool.acquire(job.batch, decided)
        try:
            written = _write_rows(slot, task, _encoded_rows(conf, layout, batches))
        except BaseException:
            _try_abort(slot)
            pool.discard(slot)
            raise
        pool.release(slot)
    return TaskReport(task, attempt, is_decided, written, plan.replaces)


def write_at_least_once(
    conf: Mapping[str, str], layout: RowLayout, batches: Iterator[pa.RecordBatch]
) -> int:
    """Returns the number of rows written."""
    producer = plain_producer(conf)
    errors: list[object] = []

    def on_delivery(error: object, rows: int) -> None:
        if error is not None:
            errors.append(error)

    encoded = _encoded_rows(conf, layout, batches)
    rows = sum(producer.produce_arrow(topic, batch, on_delivery) for topic, batch in encoded)
    producer.flush()
    if errors:
        raise DeliveryError(f"{len(errors)} batches of records were not delivered: {errors[0]}")
    return rows


def _write_rows(
    slot: TransactionalProducerSlot, task: int, encoded: Iterator[tuple[str, pa.RecordBatch]]
) -> TaskTransaction | None:
    """Returns None if there are no rows: no transaction is begun then."""
    first = next(encoded, None)
    if first is None:
        return None
    producer = slot.begin()
    rows = sum(producer.produce_arrow(topic, batch) for topic, batch in chain([first], encoded))
    return TaskTransaction(task, rows, slot.prepare())


def _encoded_rows(
    conf: Mapping[str, str], layout: RowLayout, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yields rows for the producer by topic, after checking that the topic exists."""
    encoder = layout.encoder()
    for batch in batches:
        for topic, encoded in encoder.by_topic(batch):
            require_topic(conf, topic)
            yield topic, encoded


def _try_abort(slot: TransactionalProducerSlot) -> None:
    """Abort the transaction; if that fails, the driver or the transaction timeout does."""
    with contextlib.suppress(KafkaException, RuntimeError):
        slot.abort()


_decisions_before_run: LruCache[tuple[str, str], CommitDecision | None] = LruCache(64)


def _decision_before_run(conf: Mapping[str, str], job: WriteJob) -> CommitDecision | None:
    """Returns the last decision from before the run, which this process reads once per run.

    Later decisions are those of the run itself.
    """
    return _decisions_before_run.get_or_create(
        (job.prefix, job.run), BrokerDecisionReader(conf, job.prefix).read
    )
