"""Clients that are open when the process ends: what is lost is logged, and groups are left."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas.admin import AdminClient
from barnabas.client.producer import Producer
from barnabas.testing import Broker

DEADLINE_S = 60.0

UNSENT = """
import sys
from barnabas import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 60_000})
producer.produce("orders", b"1")
producer.produce("orders", b"2")
"""

THREADS_AT_THE_END = """
import atexit, threading
atexit.register(lambda: print([thread.name for thread in threading.enumerate()]))
import sys
from barnabas import Producer
producer = Producer({"bootstrap.servers": sys.argv[1]})
producer.produce("orders", b"1")
producer.flush()
"""

MEMBER = """
import sys
from barnabas import Consumer
consumer = Consumer(
    {"bootstrap.servers": sys.argv[1], "group.id": "open", "auto.offset.reset": "earliest"}
)
consumer.subscribe(["orders"])
print(consumer.poll(30).value())
"""

ASYNC_MEMBER = """
import asyncio, sys
from barnabas.aio import Consumer

async def main():
    consumer = Consumer(
        {"bootstrap.servers": sys.argv[1], "group.id": "aio", "auto.offset.reset": "earliest"}
    )
    await consumer.subscribe(["orders"])
    print((await consumer.poll(30)).value())

asyncio.run(main())
"""

CHILD = """
import multiprocessing, sys
from barnabas import Producer

def produce():
    global producer
    producer = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 60_000})
    producer.produce("orders", b"of the child")

child = multiprocessing.get_context("fork").Process(target=produce)
child.start()
child.join()
"""

FORKED = """
import asyncio, os, sys
from barnabas import Producer, aio
from barnabas.admin import AdminClient
producer = Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 60_000})
admin = AdminClient({"bootstrap.servers": sys.argv[1]})
producer.produce("orders", b"of the parent")

async def start():
    global events
    events = aio.Producer({"bootstrap.servers": sys.argv[1], "linger.ms": 60_000})
    await events.produce("orders", b"of the parent")

runner = asyncio.Runner()
runner.run(start())
if child := os.fork():
    os.waitpid(child, 0)
    producer.purge()
    runner.run(events.close())
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic("orders")
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"1")
        producer.flush(DEADLINE_S)
        yield broker.bootstrap_servers


def run(program: str, servers: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, servers],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError('a bug')"])
def test_records_that_a_program_leaves_unsent_are_counted_on_standard_error(
    servers: str, end: str
) -> None:
    ended = run(UNSENT + end, servers)
    assert "2 records were not delivered" in ended.stderr
    assert "Call flush() first" in ended.stderr
    assert ("Traceback" in ended.stderr) == ("raise" in end)


def test_records_that_a_child_of_multiprocessing_leaves_unsent_are_counted(servers: str) -> None:
    ended = run(CHILD, servers)
    assert (ended.returncode, ended.stderr.count("1 record was not delivered")) == (0, 1)


def test_a_program_that_flushes_ends_in_silence(servers: str) -> None:
    ended = run(UNSENT + "producer.flush()", servers)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_consumer_that_is_open_at_the_end_leaves_its_group(servers: str) -> None:
    ended = run(MEMBER, servers)
    assert (ended.stdout, ended.stderr) == ("b'1'\n", "")
    with AdminClient({"bootstrap.servers": servers}) as admin:
        [described] = admin.describe_consumer_groups(["open"]).values()
        assert described.result(DEADLINE_S).members == []


def test_an_asyncio_consumer_that_cannot_leave_its_group_says_so(servers: str) -> None:
    ended = run(ASYNC_MEMBER, servers)
    assert ended.stdout == "b'1'\n"
    assert "the consumer was not closed" in ended.stderr
    assert "group aio" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_forked_process_does_not_report_the_clients_of_its_parent(servers: str) -> None:
    ended = run(FORKED, servers)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_no_thread_of_the_clients_is_left_when_the_interpreter_ends(servers: str) -> None:
    ended = run(THREADS_AT_THE_END, servers)
    assert (ended.stdout, ended.stderr) == ("['MainThread']\n", "")
