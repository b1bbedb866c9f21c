"""The cost of a request: many busy connections, and many partitions in one request."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from confluent_kafka.admin import NewTopic

from bench import raw_client
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.connection_swarm import ConnectionSwarm

BUSY_CONNECTIONS = 50
PARTITIONS_IN_REQUEST = 50
FEW_CONNECTIONS = 4


@contextmanager
def topic_with(partitions: int, broker: BrokerUnderTest) -> Iterator[str]:
    """A topic with a few small batches in each partition."""
    name = f"requests-{partitions}"
    admin = broker.admin()
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    swarm = ConnectionSwarm(broker.address, 1)
    swarm.send_repeatedly([raw_client.produce_frame(name, partitions, 100)], 3)
    swarm.close()
    yield name
    broker.delete([name])


def send_requests(connections: int, times: int, frame: bytes, broker: BrokerUnderTest) -> Figures:
    figures: Figures = {}
    count = max(broker.count(times), 2 * connections)
    swarm = ConnectionSwarm(broker.address, connections)
    swarm.send_repeatedly([frame], count // 5)  # warm up
    with broker.cpu_per_request(figures, count):
        swarm.send_repeatedly([frame], count)
    swarm.close()
    return figures


def produce(
    connections: int, partitions: int, times: int, broker: BrokerUnderTest, topic: str
) -> Figures:
    return send_requests(
        connections, times, raw_client.produce_frame(topic, partitions, 100), broker
    )


def fetch(
    connections: int, partitions: int, times: int, broker: BrokerUnderTest, topic: str
) -> Figures:
    frame = raw_client.fetch_frame(topic, partitions, max_partition_bytes=4096)
    return send_requests(connections, times, frame, broker)


CONNECTIONS = [
    Case(
        f"{verb.__name__}, {BUSY_CONNECTIONS} busy connections",
        partial(verb, BUSY_CONNECTIONS, 1, 60_000),
        partial(topic_with, 1),
    )
    for verb in (produce, fetch)
]

PARTITIONS = [
    Case(
        f"{verb.__name__}, {PARTITIONS_IN_REQUEST} partitions a request",
        partial(verb, FEW_CONNECTIONS, PARTITIONS_IN_REQUEST, times),
        partial(topic_with, PARTITIONS_IN_REQUEST),
    )
    # Kafka takes tens of milliseconds for each of these fetches, most of it waiting.
    for verb, times in ((produce, 8_000), (fetch, 500))
]
