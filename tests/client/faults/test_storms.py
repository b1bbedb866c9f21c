"""Clients at work while a broker fails, is late and hangs up, in an order from a seed."""

import time

import pytest
from tests.client.faults.seeds import seeds
from tests.client.faults.storm import CONSUMING, PRODUCING, Storm
from tests.client.faults.streams import DEADLINE_S, Member, read_all, write

from barnabas.testing import Broker

PARTITIONS = 3


@pytest.mark.parametrize("seed", seeds(3))
def test_a_producer_loses_doubles_and_reorders_nothing(broker: Broker, seed: int) -> None:
    topic = f"written-{seed}"
    broker.create_topic(topic, PARTITIONS)
    Storm(broker, seed, PRODUCING)
    written = write(broker.bootstrap_servers, topic, PARTITIONS, seed)
    broker.faults.clear()
    assert read_all(broker.bootstrap_servers, topic, PARTITIONS) == written


@pytest.mark.parametrize("seed", seeds(2))
def test_a_consumer_sees_each_record_once_and_in_order(broker: Broker, seed: int) -> None:
    topic = f"read-{seed}"
    broker.create_topic(topic, PARTITIONS)
    written = write(broker.bootstrap_servers, topic, PARTITIONS, seed)
    Storm(broker, seed, {**CONSUMING, "Metadata": PRODUCING["Metadata"]})
    assert read_all(broker.bootstrap_servers, topic, PARTITIONS) == written


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("seed", seeds(2))
def test_a_group_sees_every_record(broker: Broker, seed: int, protocol: str) -> None:
    topic = f"shared-{protocol}-{seed}"
    broker.create_topic(topic, PARTITIONS)
    Storm(broker, seed, {**PRODUCING, **CONSUMING}, often=0.15, troubles=5)
    settings = {"group.protocol": protocol}
    if protocol == "classic":
        strategy = ("range", "cooperative-sticky")[seed % 2]
        settings |= {
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 100,
            "partition.assignment.strategy": strategy,
        }
    members = [Member(broker.bootstrap_servers, topic, topic, **settings) for _ in range(2)]
    for member in members:
        member.start()
    written = write(broker.bootstrap_servers, topic, PARTITIONS, seed)
    there = {
        (partition, offset): value
        for partition, values in written.items()
        for offset, value in enumerate(values)
    }
    deadline = time.monotonic() + DEADLINE_S
    while sum(len(member.seen) for member in members) < len(there) or (
        {place for member in members for place in member.seen} != there.keys()
    ):
        assert not any(member.failure for member in members), [m.failure for m in members]
        missing = there.keys() - {place for member in members for place in member.seen}
        assert time.monotonic() < deadline, f"seed {seed}: nobody saw {sorted(missing)[:5]}"
        time.sleep(0.01)
    for member in members:
        member.ending.set()
    for member in members:
        member.join(DEADLINE_S)
        assert not member.is_alive(), "close() hangs"
        assert member.failure is None, member.failure
        assert all(there[place] == value for place, value in member.values.items())
