"""One task: its rows into a transaction of its own, or straight to the brokers."""

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
from barnabas.spark.sink.row_encoder import RowShape
from barnabas.spark.sink.transaction_log import BrokerDecisionReader, require_topic

if TYPE_CHECKING:
    import pyarrow as pa


class DeliveryError(RuntimeError):
    """Records that no broker has taken."""


def write_once(
    job: WriteJob,
    task: int,
    attempt: int,
    conf: Mapping[str, str],
    shape: RowShape,
    batches: Iterator[pa.RecordBatch],
) -> TaskReport:
    """Leaves the rows in an open transaction, unless the batch has been decided already."""
    last = _met(conf, job)
    plan = protocol.begin_task(BrokerDecisionReader(conf, job.prefix), last, job, task)
    is_decided = last is not None and last.batch >= job.batch
    written = None
    if plan.writes:
        listed = () if last is None else last.written
        decided = {each.transaction.transactional_id for each in listed}
        pool = pool_for(conf, job.prefix)
        lane = pool.acquire(job.batch, decided)
        try:
            written = _fill(lane, task, _parts(conf, shape, batches))
        except BaseException:
            _give_up(lane)
            pool.discard(lane)
            raise
        pool.release(lane)
    return TaskReport(task, attempt, is_decided, written, plan.replaces)


def write_at_least_once(
    conf: Mapping[str, str], shape: RowShape, batches: Iterator[pa.RecordBatch]
) -> int:
    """How many rows are with the brokers."""
    producer = plain_producer(conf)
    failed: list[object] = []

    def delivered(error: object, rows: int) -> None:
        if error is not None:
            failed.append(error)

    parts = _parts(conf, shape, batches)
    rows = sum(producer.produce_arrow(topic, part, delivered) for topic, part in parts)
    producer.flush()
    if failed:
        raise DeliveryError(f"{len(failed)} batches of records were not delivered: {failed[0]}")
    return rows


def _fill(
    lane: TransactionalProducerSlot, task: int, parts: Iterator[tuple[str, pa.RecordBatch]]
) -> TaskTransaction | None:
    """None where there are no rows: nobody need hear of a transaction without any."""
    first = next(parts, None)
    if first is None:
        return None
    producer = lane.begin()
    rows = sum(producer.produce_arrow(topic, part) for topic, part in chain([first], parts))
    return TaskTransaction(task, rows, lane.prepare())


def _parts(
    conf: Mapping[str, str], shape: RowShape, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows as producers take them, each time of one topic that is there."""
    encoder = shape.encoder()
    for batch in batches:
        for topic, part in encoder.by_topic(batch):
            require_topic(conf, topic)
            yield topic, part


def _give_up(lane: TransactionalProducerSlot) -> None:
    """Abort; where that fails it is left to the driver, and in the end to the timeout."""
    with contextlib.suppress(KafkaException, RuntimeError):
        lane.abort()


_last_met: LruCache[tuple[str, str], CommitDecision | None] = LruCache(64)


def _met(conf: Mapping[str, str], job: WriteJob) -> CommitDecision | None:
    """What was decided when this process met the run: since then it is the run that decides."""
    return _last_met.get_or_create(
        (job.prefix, job.run), BrokerDecisionReader(conf, job.prefix).read
    )
