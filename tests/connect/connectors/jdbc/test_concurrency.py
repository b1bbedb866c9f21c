"""Tasks that write to one table at the same time, and processes that are killed."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.connect.connectors.jdbc.databases import Database, postgresql
from tests.connect.connectors.jdbc.test_sink import INT, VALUE, rows, sink
from tests.connect.connectors.writing import records, write
from tests.connect.postgres_server import PostgresServer

from barnabas.connect import ConnectSchema, RetriableError, SchemaField, Type
from barnabas.connect.connectors.jdbc import JdbcSink

WIDER = ConnectSchema(
    Type.STRUCT,
    fields=(*VALUE.fields, SchemaField("more", ConnectSchema(Type.INT32, is_optional=True))),
)


def in_parallel(count: int, run: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            run(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors, errors


def test_tasks_create_and_extend_one_table(database: Database) -> None:
    """Each has its own process, and repeats a write that the database gave up for another."""

    def run(task: int) -> None:
        connector = JdbcSink()
        connector.configure(
            {
                **database.settings,
                "auto.create": "true",
                "auto.evolve": "true",
                "max.retries": "100",
                "retry.backoff.ms": "0",
            }
        )
        for part, schema in enumerate((VALUE, WIDER, VALUE)):
            values = rows(*((1000 * task + 10 * part + row, "x") for row in range(10)))
            batch = records(values, schema, partition=task, offset=10 * part)
            for attempt in range(100):
                try:
                    write(connector, batch, attempt=attempt)
                    break
                except RetriableError:
                    continue
            else:
                raise AssertionError("the write was given up each time")

    sink(database)  # has created the table with the positions
    in_parallel(4, run)
    expected = [1000 * task + row for task in range(4) for row in range(30)]
    assert [row[0] for row in database.rows("SELECT id FROM t ORDER BY id")] == expected


PROGRAM = """
import sys
from barnabas.connect.connectors.jdbc import JdbcSink
from tests.connect.connectors.jdbc.test_concurrency import write_forever

connector = JdbcSink()
connector.configure(dict(zip(sys.argv[1::2], sys.argv[2::2])))
connector.start()
write_forever(connector)
"""
TOTAL = 4_000
STEP = 100


def write_forever(connector: JdbcSink) -> None:
    """Writes records one range after the other, as the framework does, from the committed ones."""
    position = (connector.committed_positions([("t", 0)]) or {}).get(("t", 0), 0)
    while position < TOTAL:
        values = rows(*((number, "x") for number in range(position, position + STEP)))
        write(connector, records(values, VALUE, offset=position))
        position += STEP
        print(position, flush=True)


@pytest.mark.parametrize("seed", range(2))
def test_each_row_is_written_once_though_processes_are_killed(
    postgres_server: PostgresServer, seed: int
) -> None:
    database = postgresql(postgres_server)
    database.execute("CREATE TABLE t (id INTEGER, name VARCHAR(9))")
    chance = random.Random(seed)
    root = Path(__file__).parents[4]
    command = [sys.executable, "-c", PROGRAM]
    for entry in (database.settings | {"batch.size": "30"}).items():
        command += entry
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    for _ in range(4):
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None
            process.stdout.readline()  # it has begun
            time.sleep(chance.random() * 0.05)
            process.send_signal(signal.SIGKILL)
    connector = sink(database)
    write_forever(connector)
    found = [row[0] for row in database.rows("SELECT id FROM t ORDER BY id")]
    assert found == list(range(TOTAL))


def test_writers_of_one_key_do_not_lose_a_row(postgres_server: PostgresServer) -> None:
    """Two partitions with the same keys, in opposite orders: the database ends a deadlock."""
    database = postgresql(postgres_server)
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9))")
    key = ConnectSchema(Type.STRUCT, fields=(SchemaField("id", INT),))

    def run(task: int) -> None:
        connector = sink(
            database, insert_mode="upsert", pk_mode="record_key", max_retries="1000", batch_size="1"
        )
        ids = list(range(40))[:: 1 if task else -1]
        keys = [{"id": number} for number in ids]
        batches = [
            records(rows((number, f"{task}")), VALUE, [each], key, partition=task, offset=offset)
            for offset, (number, each) in enumerate(zip(ids, keys, strict=True))
        ]
        for attempt in range(1000):
            try:
                write(connector, *batches, attempt=attempt)
                return
            except RetriableError:
                continue

    in_parallel(2, run)
    names = {row[0] for row in database.rows("SELECT name FROM t")}
    assert database.rows("SELECT count(*) FROM t") == [(40,)]
    assert names in ({"0"}, {"1"})
