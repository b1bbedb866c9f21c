"""The data source "barnabas-work": Spark asks the driver for work items, and runs them as tasks.

Its three parts run in three processes. The runner of the query's source asks the driver for the
items of the next micro-batch (`latestOffset`) and passes one to each task. A task runs its item and
returns the report as its only row.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from barnabas.spark.runtime.errors import PlanFailedError, QueryError
from barnabas.spark.runtime.work_execution import PickledItem, run_item

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

FORMAT = "barnabas-work"
COLUMN = "report"
SCHEMA = f"{COLUMN} binary"

DIRECTORY_OPTION = "directory"
"""Where the driver's socket is, and the key of its connections: on the machine of the driver."""

SOCKET_FILE = "planner"
KEY_FILE = "key"

Offset = dict[str, int]
_BATCH = "batch"

Plan = tuple[int, list[PickledItem]] | str | None
"""The driver's response: the number of a batch and its items, an error, or None without work."""


class WorkDataSource(DataSource):
    """Registered in the session of each work query."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return WorkStreamReader(Path(self.options[DIRECTORY_OPTION]))


class WorkStreamReader(DataSourceStreamReader):
    """An offset is the number of the next batch. The checkpoint of a query is never read again, so
    no batch is planned from it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._connection: Connection | None = None
        self._planned: tuple[Offset, list[PickledItem]] | None = None

    # In the runner

    def initialOffset(self) -> Offset:  # noqa: N802
        return {_BATCH: -1}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        plan = self._ask()
        if plan is None:
            return start
        if isinstance(plan, str):
            raise PlanFailedError(plan)
        number, items = plan
        end = {_BATCH: number}
        self._planned = end, items
        return end

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        if self._planned is None or self._planned[0] != end:
            raise QueryError(f"micro-batch {end} was not planned by this run of the query")
        return [InputPartition(item) for item in self._planned[1]]

    def stop(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _ask(self) -> Plan:
        if self._connection is None:
            key = (self._directory / KEY_FILE).read_bytes()
            self._connection = Client(str(self._directory / SOCKET_FILE), authkey=key)
        self._connection.send_bytes(b"")
        plan: Plan = self._connection.recv()
        return plan

    # In a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa  # not in the runner, which starts faster without it
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        report = run_item(partition.value, context.attemptNumber())
        column = pa.array([pickle.dumps(report, -1)], pa.binary())
        yield pa.RecordBatch.from_arrays([column], names=[COLUMN])
