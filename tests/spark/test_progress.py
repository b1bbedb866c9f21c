"""Spark's reports, read as rows, bytes and lag of topics."""

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryProgress,
)

from barnabas.spark.progress import BYTES_PREFIX, ProgressLines, batch, counting_bytes

QUERY = "6f1a2b4c-0000-0000-0000-000000000001"
RUN = "6f1a2b4c-0000-0000-0000-000000000002"

ORDERS = {
    "description": "PythonMicroBatchStream",
    "startOffset": {"orders": {"0": 0, "1": 0}},
    "endOffset": {"orders": {"0": 90, "1": 80}},
    "latestOffset": {"orders": {"0": 100, "1": 80, "2": 7}},
    "numInputRows": 170,
    "inputRowsPerSecond": 100.0,
    "processedRowsPerSecond": 1700.0,
}
FILES = {**ORDERS, "startOffset": None, "endOffset": {"logOffset": 3}, "numInputRows": 5}


def report(*sources: dict[str, Any], observed: dict[str, Any] | None = None) -> Any:
    return StreamingQueryProgress.fromJson(
        {
            "id": QUERY,
            "runId": RUN,
            "name": "totals",
            "timestamp": "2026-01-01T00:00:00.000Z",
            "batchId": 12,
            "batchDuration": 100,
            "durationMs": {},
            "eventTime": {},
            "stateOperators": [],
            "sources": list(sources),
            "sink": {"description": "sink", "numOutputRows": -1},
            "numInputRows": 170,
            "inputRowsPerSecond": 100.0,
            "processedRowsPerSecond": 1700.0,
            "observedMetrics": observed or {},
        }
    )


def test_lag_includes_unread_records_of_new_partitions() -> None:
    (reading,) = batch(report(ORDERS)).sources
    assert reading.lag == {("orders", 0): 10, ("orders", 1): 0, ("orders", 2): 7}
    assert reading.behind == 17
    assert reading.topics == ("orders",)
    assert reading.rows == 170


def test_sources_that_are_not_topics_are_ignored() -> None:
    assert [each.rows for each in batch(report(FILES, ORDERS)).sources] == [170]


def test_a_source_without_latest_offsets_has_no_lag() -> None:
    (reading,) = batch(report({**ORDERS, "latestOffset": None})).sources
    assert (reading.topics, reading.lag, reading.behind) == (("orders",), {}, 0)


def test_bytes_are_those_of_the_observation() -> None:
    assert batch(report(ORDERS)).size_bytes is None
    observed = {
        BYTES_PREFIX + "orders": {"bytes": 17_000},
        BYTES_PREFIX + "bills": {"bytes": 20},
        "mine": {"bytes": 1},
    }
    done = batch(report(ORDERS, observed=observed))
    assert done.bytes_by_frame == {"orders": 17_000, "bills": 20}
    assert done.size_bytes == 17_020


def test_the_listener_prints_a_line_for_each_batch() -> None:
    lines: list[str] = []
    listener = ProgressLines(lines.append)
    listener.onQueryStarted(
        QueryStartedEvent.fromJson(
            {"id": QUERY, "runId": RUN, "name": "totals", "timestamp": "", "jobTags": []}
        )
    )
    listener.onQueryProgress(QueryProgressEvent(report(ORDERS)))
    listener.onQueryProgress(QueryProgressEvent(report({**ORDERS, "numInputRows": 0})))
    listener.onQueryTerminated(
        QueryTerminatedEvent.fromJson(
            {
                "id": QUERY,
                "runId": RUN,
                "exception": "the broker is gone\n  at java",
                "errorClassOnException": None,
            }
        )
    )
    assert lines == [
        "totals started",
        "totals batch 12: 170 rows in 100 ms; orders 17 behind",
        "totals failed: the broker is gone",
    ]


def test_bytes_of_decoded_columns_cannot_be_counted(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="'ids' cannot be counted"):
        counting_bytes(spark.range(3), "ids")
