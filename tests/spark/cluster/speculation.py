"""Two attempts of one task at a time, as Spark runs them for stragglers: each row once.

python -m tests.spark.cluster.speculation MASTER SERVERS DIRECTORY

One of the attempts is slow when it has handed over its rows and before it is done, so that they
lie in an open transaction. Then each row must be there once, and no transaction may be open, long
before the slow attempt would have ended. (Spark speculates on clusters only, and on another host.)
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
END_S = 30.0
"""That anybody may take to see to what a loser has left."""

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
        home = Path(directory) / str(number)
        home.mkdir()
        topic = Topic.create(servers)
        began = time.monotonic()
        write(spark, case, topic, home)
        took_s = time.monotonic() - began
        wait_until(lambda: not still_open(servers), f"{case}: nothing is open", END_S)
        values = topic.values()
        assert len(values) == len(set(values)) == ROWS, f"{case}: {len(values):,} rows"
        assert took_s < LOSES_S, f"{case}: the slow attempt was waited for"
        assert (home / "attempt 1").exists(), f"{case}: Spark has not speculated"
        print(f"{case}: {ROWS:,} rows, each once, in {took_s:.0f} s", flush=True)
    spark.stop()


def write(spark: SparkSession, case: Case, topic: Topic, home: Path) -> None:
    numbers = spark.range(0, ROWS, 1, TASKS).selectExpr("cast(id as string) as value")
    slow = straggling(case, home)
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
    writer = writer.option("checkpointLocation", str(home / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def straggling(
    case: Case, home: Path
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The rows as they are; the first task's attempts are slow, and leave a file behind."""
    slow_s = (case.first_s, case.second_s)

    def passed_on(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context is not None and context.partitionId() == 0:
            attempt = context.attemptNumber()
            (home / f"attempt {attempt}").touch()
            time.sleep(slow_s[attempt])

    return passed_on


def still_open(servers: str) -> list[str]:
    with AdminClient({"bootstrap.servers": servers}) as admin:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).result(20).all()
    return [each.transactional_id for found in listed.values() for each in found]


if __name__ == "__main__":
    main(*sys.argv[1:])
