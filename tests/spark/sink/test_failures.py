"""Writes that fail or are stopped half-way: nothing of them is seen, nothing holds readers up."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.spark.sink.topics import Topic
from tests.wait import wait_until

from barnabas.admin import AdminClient, TransactionState

ROWS = 600
WIDTH = 1_000
"""Of a value: what is on its way between processes of Spark is a part of what there is."""

BAD = "a bad row"
Batches = Iterator[pa.RecordBatch]

AT_ONCE = "spark.sql.execution.arrow.maxRecordsPerBatch"


@pytest.fixture(autouse=True)
def small_arrow_batches(spark: SparkSession) -> Iterator[None]:
    """A writer gets fewer rows at once than there are: some are written when a task ends."""
    before = spark.conf.get(AT_ONCE)
    spark.conf.set(AT_ONCE, ROWS // 6)
    yield
    spark.conf.set(AT_ONCE, before)


def open_ids(topic: Topic) -> list[str]:
    with AdminClient({"bootstrap.servers": topic.bootstrap_servers}) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).result(20).all()
    return [each.transactional_id for found in listed.values() for each in found]


def rows_and_then(go_on: Path, last: str) -> Callable[[Batches], Batches]:
    """Rows, of which some are written when the file is there, and the last; or an error of it."""

    def rows(batches: Batches) -> Batches:
        for _ in batches:
            for first in range(0, ROWS, ROWS // 6):  # what is yielded last may stay in a buffer
                values = [str(row).zfill(WIDTH) for row in range(first, first + ROWS // 6)]
                yield pa.RecordBatch.from_pydict({"value": values})
            while not go_on.exists():
                time.sleep(0.01)
            if last == BAD:
                raise ValueError(BAD)
            yield pa.RecordBatch.from_pydict({"value": [last]})

    return rows


def save(frame: DataFrame, topic: Topic) -> None:
    frame.write.format("barnabas").options(**topic.options).mode("append").save()


def test_a_save_with_a_failed_task_writes_nothing(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    go_on = tmp_path / "go on"
    failing = spark.range(0, 1, 1, 1).mapInArrow(rows_and_then(go_on, BAD), "value string")

    def fail_when_rows_are_written() -> None:
        try:
            wait_until(lambda: open_ids(topic), "rows are written", 100)
        finally:
            go_on.touch()

    with ThreadPoolExecutor(1) as aside:
        written = aside.submit(fail_when_rows_are_written)
        with pytest.raises(PySparkException, match=BAD):
            save(failing, topic)
        written.result(100)
    # A task that was stopped as well may take a moment to notice.
    wait_until(lambda: not open_ids(topic), "no transaction is open")
    save(spark.range(3).selectExpr("cast(id as string) as value"), topic)
    assert topic.values() == ["0", "1", "2"]


def test_a_query_stopped_in_a_batch_writes_it_once_after_restart(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    texts, may_go_on = tmp_path / "texts", tmp_path / "go on"
    spark.range(0, 1, 1, 1).selectExpr("'x'").write.text(str(texts))
    writing = (
        spark.readStream.text(str(texts))
        .mapInArrow(rows_and_then(may_go_on, "last"), "value string")
        .writeStream.format("barnabas")
        .options(**topic.options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
    )
    query = writing.start()
    wait_until(lambda: open_ids(topic), "the batch is under way", 100)
    query.stop()
    may_go_on.touch()
    again = writing.start()
    assert again.awaitTermination(100)
    assert open_ids(topic) == []
    assert topic.values() == [*(str(row).zfill(WIDTH) for row in range(ROWS)), "last"]
