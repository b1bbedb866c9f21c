"""Clients of confluent_kafka are slowed down to their quotas, in the time of the broker."""

import socket
import time
import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from barnabas.admin import AdminClient, ClientQuotaAlteration, ClientQuotaEntity, NewTopic
from barnabas.testing import Broker

RATE = 100_000
BURST = 10 * RATE
"""What a client may send before it has to wait."""

RECORD = bytes(RATE)
COUNT = 30
STEP_S = 0.5


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        yield admin


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"t-{uuid.uuid4().hex}"
    broker.create_topic(name)
    return name


def set_quota(admin: AdminClient, client_id: str, **quotas: float | None) -> None:
    entity = ClientQuotaEntity({"client-id": client_id})
    admin.alter_client_quotas([ClientQuotaAlteration(entity, dict(quotas))])[entity].result(30)


class Throttles:
    """The delays that a client reports, and a clock that moves while it waits."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.delays_s: list[float] = []
        self.elapsed_s = 0.0

    def __call__(self, event: Any) -> None:
        self.delays_s.append(event.throttle_time)

    def advance(self) -> None:
        self._broker.clock.advance(STEP_S)
        self.elapsed_s += STEP_S


def test_a_producer_is_slowed_to_its_quota(broker: Broker, admin: AdminClient, topic: str) -> None:
    set_quota(admin, "slow-producer", producer_byte_rate=RATE)
    throttles = Throttles(broker)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "slow-producer",
            "linger.ms": 0,
            "batch.num.messages": 1,
            "throttle_cb": throttles,
        }
    )
    broker.clock.freeze()
    try:
        for _ in range(COUNT):
            producer.produce(topic, RECORD)
        while producer.flush(0.1):
            throttles.advance()
    finally:
        broker.clock.resume()
    least_s = (COUNT * len(RECORD) - BURST) / RATE
    assert least_s - 2 <= throttles.elapsed_s <= 3 * least_s
    assert max(throttles.delays_s) > 0
    set_quota(admin, "slow-producer", producer_byte_rate=None)


def test_a_consumer_is_slowed_to_its_quota(broker: Broker, admin: AdminClient, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(COUNT):
        producer.produce(topic, RECORD)
    assert producer.flush(60) == 0
    set_quota(admin, "slow-consumer", consumer_byte_rate=RATE)
    throttles = Throttles(broker)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "client.id": "slow-consumer",
            "group.id": "none",
            "max.partition.fetch.bytes": RATE,
            "throttle_cb": throttles,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    broker.clock.freeze()
    received = 0
    try:
        while received < COUNT:
            messages = consumer.consume(COUNT, 0.1)
            received += sum(message.error() is None for message in messages)
            if not messages:
                throttles.advance()
    finally:
        broker.clock.resume()
    consumer.close()
    least_s = (COUNT * len(RECORD) - BURST) / RATE
    assert least_s - 2 <= throttles.elapsed_s <= 3 * least_s
    assert max(throttles.delays_s) > 0
    set_quota(admin, "slow-consumer", consumer_byte_rate=None)


def test_partitions_are_created_at_the_rate_of_the_quota(
    broker: Broker, admin: AdminClient, topic: str
) -> None:
    entity = ClientQuotaEntity({"user": "ANONYMOUS"})
    change = ClientQuotaAlteration(entity, {"controller_mutation_rate": 1.0})
    admin.alter_client_quotas([change])[entity].result(30)

    throttles = Throttles(broker)
    broker.clock.freeze()
    try:
        # There are 11 tokens; the second topic waits until the other nine are there.
        for number in range(2):
            name = f"{topic}-{number}"
            created = admin.create_topics([NewTopic(name, 20, 1)])[name]
            while not created.done():
                time.sleep(0.05)
                throttles.advance()
            created.result()
    finally:
        broker.clock.resume()
    assert 8 <= throttles.elapsed_s <= 30
    change = ClientQuotaAlteration(entity, {"controller_mutation_rate": None})
    admin.alter_client_quotas([change])[entity].result(30)


def test_an_address_that_connects_too_fast_is_disconnected(
    broker: Broker, admin: AdminClient
) -> None:
    entity = ClientQuotaEntity({"ip": "127.0.0.1"})
    change = ClientQuotaAlteration(entity, {"connection_creation_rate": 1.0})
    admin.alter_client_quotas([change])[entity].result(30)
    host, port = broker.bootstrap_servers.split(":")
    broker.clock.freeze()
    try:
        clients = [socket.create_connection((host, int(port)), 10) for _ in range(30)]
        broker.clock.advance(2)
        closed = 0
        for client in clients:
            client.settimeout(0.2)
            try:
                closed += client.recv(1) == b""
            except TimeoutError:
                pass
            except OSError:
                closed += 1
            client.close()
        assert 15 <= closed < 30
    finally:
        broker.clock.resume()
    change = ClientQuotaAlteration(entity, {"connection_creation_rate": None})
    admin.alter_client_quotas([change])[entity].result(30)
