"""Waiting for records, against a broker."""

import time
from concurrent.futures import ThreadPoolExecutor

from barnabas.spark.source.cluster_client import SourceClusterClient as Driver
from barnabas.spark.source.connection import connect
from barnabas.spark.source.offsets import Offsets
from barnabas.testing import Broker
from barnabas.wire.messages.fetch import FetchRequest

DEADLINE_S = 30.0
TOO_LONG_MS = 10 * int(DEADLINE_S * 1000)


def driver(broker: Broker, ends: Offsets) -> Driver:
    """One that knows who leads these partitions."""
    made = Driver(connect({"bootstrap.servers": broker.bootstrap_servers}))
    deadline_s = time.monotonic() + DEADLINE_S
    while made.wait_for_records(ends, 10) is None:
        assert time.monotonic() < deadline_s
    return made


def test_a_wait_returns_the_new_ends_of_partitions(broker: Broker, topic_of) -> None:
    topic = topic_of(4, partitions=2)
    ends = {(topic.name, 0): 2, (topic.name, 1): 2}
    waits = driver(broker, ends)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(waits.wait_for_records, ends, TOO_LONG_MS)
        topic.add(1)
        assert waiting.result(DEADLINE_S) == {(topic.name, 0): 3}
    assert waits.wait_for_records(ends | {(topic.name, 0): 3}, 1) == {}


def test_a_repeated_wait_reports_no_partition_twice(broker: Broker, topic_of) -> None:
    topic = topic_of(partitions=50)
    ends = {(topic.name, index): 0 for index in range(50)}
    said: list[int] = []

    def is_heard(request: FetchRequest) -> bool:
        if request.max_bytes == 1:  # nobody else asks for as little
            said.append(sum(len(each.partitions) for each in request.topics))
        return False

    with broker.faults.drop("Fetch", when=is_heard):
        waits = driver(broker, ends)
        for _ in range(3):
            assert waits.wait_for_records(ends, 20) == {}
    assert said[0] == 50
    assert set(said[1:]) == {0}


def test_a_wait_returns_none_if_a_broker_responds_with_an_error(broker: Broker, topic_of) -> None:
    topic = topic_of(1, partitions=1)
    ends = {(topic.name, 0): 1}
    waits = driver(broker, ends)
    with broker.faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER", times=1):
        assert waits.wait_for_records(ends, TOO_LONG_MS) is None
    assert waits.wait_for_records({("nowhere", 0): 1}, 1) is None
    assert waits.wait_for_records({}, 1) is None
