"""One task: its rows into a transaction of its own, or straight to the brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.client.errors import KafkaException
from barnabas.spark.kept import Kept
from barnabas.spark.sink import protocol
from barnabas.spark.sink.decision import Decision, Written
from barnabas.spark.sink.ledger import PATIENCE_S, BrokerDecisions, require_topic
from barnabas.spark.sink.pool import Lane, plain_producer, pool_for
from barnabas.spark.sink.protocol import Report
from barnabas.spark.sink.rows import RowShape

if TYPE_CHECKING:
    import pyarrow as pa


class DeliveryError(RuntimeError):
    """Records that no broker has taken."""


@dataclass(slots=True, frozen=True)
class Job:
    """What a task writes for."""

    prefix: str
    run: str
    batch: int


def write_once(
    job: Job,
    task: int,
    attempt: int,
    conf: Mapping[str, str],
    shape: RowShape,
    batches: Iterator[pa.RecordBatch],
) -> Report:
    """Leaves the rows in an open transaction, unless the batch has been decided already."""
    began_s = time.time()
    last = _met(conf, job)
    plan = protocol.begin_task(BrokerDecisions(conf, job.prefix), last, job.batch, task)
    is_decided = last is not None and last.batch >= job.batch
    written = None
    if plan.writes:
        listed = () if last is None else last.written
        decided = {each.transaction.transactional_id for each in listed}
        pool = pool_for(conf, job.prefix)
        lane = pool.take(job.batch, decided)
        try:
            written = _fill(lane, task, conf, shape, batches)
        except BaseException:
            _give_up(lane)
            pool.discard(lane)
            raise
    return Report(task, attempt, began_s, is_decided, written, plan.replaces)


def write_at_least_once(
    conf: Mapping[str, str], shape: RowShape, batches: Iterator[pa.RecordBatch]
) -> int:
    """How many rows are with the brokers."""
    producer = plain_producer(conf)
    failed: list[object] = []

    def delivered(error: object, rows: int) -> None:
        if error is not None:
            failed.append(error)

    rows = 0
    encoder = shape.encoder()
    for batch in batches:
        for topic, part in encoder.by_topic(batch):
            require_topic(conf, topic)
            rows += producer.produce_arrow(topic, part, delivered)
    producer.flush()
    if failed:
        raise DeliveryError(f"{len(failed)} batches of records were not delivered: {failed[0]}")
    return rows


def _fill(
    lane: Lane,
    task: int,
    conf: Mapping[str, str],
    shape: RowShape,
    batches: Iterator[pa.RecordBatch],
) -> Written | None:
    """None where there are no rows: nobody need hear of a transaction without any."""
    rows = 0
    encoder = shape.encoder()
    for batch in batches:
        for topic, part in encoder.by_topic(batch):
            if not rows:
                lane.begin()
            require_topic(conf, topic)
            rows += lane.producer.produce_arrow(topic, part)
    return Written(task, rows, lane.producer.prepare_transaction(PATIENCE_S)) if rows else None


def _give_up(lane: Lane) -> None:
    """Abort; where that fails it is left to the driver, and in the end to the timeout."""
    try:
        lane.producer.abort_transaction(5)
    except (KafkaException, RuntimeError):
        return


_last_met: Kept[tuple[str, str], Decision | None] = Kept(64)


def _met(conf: Mapping[str, str], job: Job) -> Decision | None:
    """What was decided when this process met the run: since then it is the run that decides."""
    return _last_met.get((job.prefix, job.run), BrokerDecisions(conf, job.prefix).read)
