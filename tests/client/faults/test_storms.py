"""Clients at work while a broker fails, is late and hangs up, in an order from a seed."""

import asyncio
import random
import threading
import time

import pytest
from tests.client.faults.seeds import seeds
from tests.client.faults.storm import CONSUMING, HURRIED, PRODUCING, Storm
from tests.client.faults.streams import DEADLINE_S, Member, read_all, write

from barnabas import aio
from barnabas.testing import Broker

PARTITIONS = 3


@pytest.mark.parametrize("seed", seeds(3))
def test_a_producer_loses_duplicates_and_reorders_nothing(broker: Broker, seed: int) -> None:
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
    Storm(broker, seed, {**PRODUCING, **CONSUMING}, troubles=5)
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
        {position for member in members for position in member.seen} != there.keys()
    ):
        assert not any(member.failure for member in members), [m.failure for m in members]
        missing = there.keys() - {position for member in members for position in member.seen}
        assert time.monotonic() < deadline, f"seed {seed}: no member saw {sorted(missing)[:5]}"
        time.sleep(0.01)
    for member in members:
        member.ending.set()
    for member in members:
        member.join(DEADLINE_S)
        assert not member.is_alive(), "close() hangs"
        assert member.failure is None, member.failure
        assert all(there[position] == value for position, value in member.values.items())


@pytest.mark.parametrize("seed", seeds(1))
def test_clients_survive_restarts_of_the_broker(broker: Broker, seed: int) -> None:
    topic = f"restarted-{seed}"
    broker.create_topic(topic, PARTITIONS)
    pauses = random.Random(f"{seed} restarts")
    is_written = threading.Event()

    def restart() -> None:
        for _ in range(6):
            if is_written.wait(pauses.choice([0.02, 0.1, 0.3])):
                return
            broker.restart()

    member = Member(broker.bootstrap_servers, topic, topic)
    member.start()
    restarting = threading.Thread(target=restart)
    restarting.start()
    try:
        written = write(broker.bootstrap_servers, topic, PARTITIONS, seed)
    finally:
        is_written.set()
        restarting.join()
    assert read_all(broker.bootstrap_servers, topic, PARTITIONS) == written
    deadline = time.monotonic() + DEADLINE_S
    while len(member.seen) < sum(map(len, written.values())):
        assert member.failure is None, member.failure
        assert time.monotonic() < deadline, f"seed {seed}: it saw {len(member.seen)}"
        time.sleep(0.01)
    member.ending.set()
    member.join(DEADLINE_S)
    assert not member.is_alive(), "close() hangs"
    assert member.failure is None, member.failure


@pytest.mark.parametrize("seed", seeds(1))
def test_asyncio_clients_survive_restarts_too(broker: Broker, seed: int) -> None:
    topic = f"aio-{seed}"
    broker.create_topic(topic)
    Storm(broker, seed, {**PRODUCING, **CONSUMING}, troubles=5)
    settings = {"bootstrap.servers": broker.bootstrap_servers, **HURRIED}
    values = [b"%d" % number for number in range(300)]

    async def write_and_read() -> tuple[list[int | None], list[bytes | None]]:
        async with aio.Producer(settings) as producer:
            sent = [await producer.produce(topic, value) for value in values]
            offsets = [(await each).offset() for each in sent]
        reading = {"group.id": topic, "auto.offset.reset": "earliest"}
        async with aio.Consumer({**settings, **reading}) as consumer:
            await consumer.subscribe([topic])
            read: list[bytes | None] = []
            async for message in consumer:
                assert message.error() is None
                read.append(message.value())
                if len(read) == len(values):
                    return offsets, read
        raise AssertionError("the consumer ended by itself")

    offsets, read = asyncio.run(asyncio.wait_for(write_and_read(), DEADLINE_S))
    assert offsets == list(range(len(values)))
    assert read == values
