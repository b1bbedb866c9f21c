"""Two concurrent attempts of one task, as Spark's speculation runs them: each row is written once.

python -m tests.spark.cluster.speculation MASTER SERVERS DIRECTORY

One attempt is slow after it has written its rows, so that they are in an open transaction. Each row
must be written once, and no transaction may be open, long before the slow attempt would have ended.
(Spark speculates only on clusters, and on another host.)
"""

import itertools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from tests.spark.cluster.journey import session
from tests.spark.sink.topics import Topic
from tests.wait import wait_until

from barnabas.admin import AdminClient, TransactionState

TASKS = 6
ROWS = 2 * TASKS * 10_000
"""A task has two of Arrow's batches, so that the first is written before the last comes."""

WINS_S, LOSES_S = 5.0, 120.0
TIMEOUT_S = 30.0
"""Until the open transaction of the slower attempt must be aborted."""

SPECULATING = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.efficiency.enabled": "false",
}


@dataclass(slots=True, frozen=True)
class Case:
    is_stream: bool
    first_s: float
    """How long the first attempt of one task is slow."""
    second_s: float


CASES = [
    Case(is_stream, *slow)
    for is_stream, slow in itertools.product((False, True), ((LOSES_S, 0.0), (WINS_S, LOSES_S)))
]


def main(master: str, servers: str, directory: str) -> None:
    spark = session(master, **SPECULATING)
    for number, case in enumerate(CASES):
        folder = Path(directory) / str(number)
        folder.mkdir()
        topic = Topic.create(servers)
        started_s = time.monotonic()
        write(spark, case, topic, folder)
        took_s = time.monotonic() - started_s
        wait_until(lambda: not open_transactions(servers), f"{case}: nothing is open", TIMEOUT_S)
        values = topic.values()
        assert len(values) == len(set(values)) == ROWS, f"{case}: {len(values):,} rows"
        assert took_s < LOSES_S, f"{case}: the slow attempt was waited for"
        assert (folder / "attempt 1").exists(), f"{case}: Spark has not speculated"
        print(f"{case}: {ROWS:,} rows, each once, in {took_s:.0f} s", flush=True)
    spark.stop()


def write(spark: SparkSession, case: Case, topic: Topic, folder: Path) -> None:
    numbers = spark.range(0, ROWS, 1, TASKS).selectExpr("cast(id as string) as value")
    slow = slow_attempts(case, folder)
    if not case.is_stream:
        slowed = numbers.mapInArrow(slow, "value string")
        slowed.write.format("barnabas").options(**topic.options).mode("append").save()
        return
    source = Topic.create(topic.bootstrap_servers)
    numbers.write.format("barnabas").options(**source.options).mode("append").save()
    address = {"kafka.bootstrap.servers": topic.bootstrap_servers}
    reader = spark.readStream.format("barnabas").options(**address, subscribe=source.name)
    stream = reader.options(startingOffsets="earliest", minPartitions=TASKS).load()
    slowed = stream.selectExpr("cast(value as string) as value").mapInArrow(slow, "value string")
    writer = slowed.writeStream.format("barnabas").options(**topic.options)
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def slow_attempts(
    case: Case, folder: Path
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Returns a function that passes rows on; the attempts of the first task are slow."""
    slow_s = (case.first_s, case.second_s)

    def pass_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0:
            attempt = context.attemptNumber()
            (folder / f"attempt {attempt}").touch()
            time.sleep(slow_s[attempt])

    return pass_on


def open_transactions(servers: str) -> list[str]:
    with AdminClient({"bootstrap.servers": servers}) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).result(20).all()
    return [listing.transactional_id for listings in listed.values() for listing in listings]


if __name__ == "__main__":
    main(*sys.argv[1:])
