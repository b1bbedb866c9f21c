"""Dead letters of a query of Spark: rows of a source's stream, or records of a producer."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.connect.data.batch import headers_type
from barnabas.connect.execution.dead_letters import context_headers, produce_dead_letters
from barnabas.connect.execution.record_errors import RecordErrors
from barnabas.spark.sink.producer_pool import plain_producer
from barnabas.spark.sink.task import DeliveryError

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger("barnabas.connect")


def task_number() -> int:
    """Returns the number of the task that this process runs."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def dead_letter_rows(errors: RecordErrors) -> pa.RecordBatch:
    """Returns the dead letters as rows for a producer."""
    import pyarrow as pa

    settings = errors.settings
    rows = []
    for record in errors.failed:
        headers = list(record.headers)
        if settings.has_context_headers:
            headers += context_headers(errors.connector, errors.task, record)
        rows.append(
            {
                "key": record.key,
                "value": record.value,
                "timestamp": record.timestamp_ms,
                "headers": [{"key": key, "value": value} for key, value in headers] or None,
            }
        )
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("timestamp", pa.timestamp("ms", "UTC")),
            ("headers", headers_type()),
        ]
    )
    return pa.RecordBatch.from_pylist(rows, schema)


def send_dead_letters(errors: RecordErrors, producer_settings: Mapping[str, str]) -> None:
    """Returns when the dead letters are acknowledged. Raises DeliveryError."""
    if not errors.failed:
        return
    producer = plain_producer(producer_settings)
    lost: list[object] = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            lost.append(error)

    settings = errors.settings
    produce_dead_letters(
        producer, settings, errors.connector, errors.task, errors.failed, on_delivery
    )
    producer.flush()
    if lost:
        raise DeliveryError(
            f"{len(lost)} dead letters were not written to {settings.dead_letter_topic}: {lost[0]}"
        )


def log_errors(errors: RecordErrors) -> None:
    for line in errors.summary.lines:
        log.error("%s", line)
