"""Transactions while a broker fails, is late and hangs up, in an order from a seed."""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.faults.seeds import seeds
from tests.client.faults.storm import HURRIED, TRANSACTING, Storm
from tests.client.faults.streams import DEADLINE_S, read_all

from barnabas import Consumer, KafkaException, Producer, TopicPartition
from barnabas.client.values import ConsumerGroupMetadata
from barnabas.testing import Broker

PARTITIONS = 3


@pytest.fixture
def broker(transacting: Broker) -> Iterator[Broker]:
    yield transacting
    transacting.faults.clear()


@pytest.mark.parametrize("seed", seeds(2))
def test_transactions_are_whole_or_not_at_all(broker: Broker, seed: int) -> None:
    dice = random.Random(seed)
    topic = f"transacted-{seed}"
    broker.create_topic(topic, PARTITIONS)
    Storm(broker, seed, TRANSACTING, troubles=6)
    producer = a_producer(broker, topic)
    insist(producer.init_transactions, DEADLINE_S)
    group = ConsumerGroupMetadata(topic)
    committed: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
    offset = 0
    for number in range(12):
        written: list[tuple[int, bytes]] = []
        is_kept = dice.random() < 0.7
        producer.begin_transaction()
        for index in range(dice.choice([0, 1, 30])):
            partition = dice.randrange(PARTITIONS)
            value = b"%d %d" % (number, index)
            producer.produce(topic, value, partition=partition)
            written.append((partition, value))
        if dice.random() < 0.5:
            producer.flush(dice.choice([0.01, DEADLINE_S]))
        moves = dice.random() < 0.5
        try:
            if moves:
                topic_partitions = [TopicPartition(topic, 0, number + 1)]
                insist(producer.send_offsets_to_transaction, topic_partitions, group, 5)
            insist(producer.commit_transaction if is_kept else producer.abort_transaction, 5)
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            insist(producer.abort_transaction, 5)
            is_kept = False
        if is_kept:
            for partition, value in written:
                committed[partition].append(value)
            offset = number + 1 if moves else offset
    assert producer.close(10)
    broker.faults.clear()
    reading = {"isolation.level": "read_committed"}
    assert read_all(broker.bootstrap_servers, topic, PARTITIONS, **reading) == committed
    assert offset_of(broker, topic) == offset


def a_producer(broker: Broker, transactional_id: str, **settings: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            **HURRIED,
            **settings,
        }
    )


def insist(call: Callable[..., None], *given: Any) -> None:
    """Make a call again as long as its error says that it may be; each has to end in time."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            call(*given)
            return
        except KafkaException as failure:
            if not failure.args[0].retriable() or time.monotonic() > deadline:
                raise


def offset_of(broker: Broker, topic: str) -> int:
    settings = {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": topic,
        "isolation.level": "read_committed",
    }
    with Consumer(settings) as consumer:
        return max(0, consumer.committed([TopicPartition(topic, 0)], 10)[0].offset)
