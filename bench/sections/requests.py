"""The cost of a request: many busy connections, and many partitions in one request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat

from confluent_kafka.admin import NewTopic

from bench import raw_client
from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.connection_swarm import ConnectionSwarm
from bench.raw_client import RawConnection
from bench.request_frames import (
    NextFrame,
    compressed_frame,
    idempotent_frames,
    session_fetch_frames,
)

BUSY_CONNECTIONS = 50
PARTITIONS_IN_REQUEST = 50
FEW_CONNECTIONS = 4
REPEAT = 5
WARM_UP_FACTOR = 2
"""A just-in-time compiler needs some 100,000 requests of a kind."""


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


def send_requests(
    connections: int,
    times: int,
    next_frame: Callable[[RawConnection], NextFrame],
    broker: BrokerUnderTest,
) -> Figures:
    """Each connection has one request in flight; broker and driver have a core each."""
    figures: Figures = {}
    count = max(broker.count(times), 2 * connections)
    setup = RawConnection(broker.address)
    next_frames = [next_frame(setup) for _ in range(connections)]
    setup.close()
    swarm = ConnectionSwarm(broker.address, connections)
    with broker.one_core():
        swarm.send_all(next_frames, max(broker.count(WARM_UP_FACTOR * times), connections))
        with broker.cpu_per_request(figures, count):
            swarm.send_all(next_frames, count)
    swarm.close()
    return figures


def repeated(frame: bytes) -> Callable[[RawConnection], NextFrame]:
    return lambda _: repeat(frame).__next__


def produce(partitions: int, topic: str) -> Callable[[RawConnection], NextFrame]:
    return repeated(raw_client.produce_frame(topic, partitions, 100))


def fetch(partitions: int, topic: str) -> Callable[[RawConnection], NextFrame]:
    """From the second batch on, so that an index is needed."""
    return repeated(raw_client.fetch_frame(topic, partitions, offset=1, max_partition_bytes=4096))


def produce_idempotent(_: int, topic: str) -> Callable[[RawConnection], NextFrame]:
    return lambda connection: idempotent_frames(connection, topic, 100)


def produce_compressed(_: int, topic: str) -> Callable[[RawConnection], NextFrame]:
    return repeated(compressed_frame(topic, 10, 100))


def fetch_in_session(_: int, topic: str) -> Callable[[RawConnection], NextFrame]:
    return lambda connection: session_fetch_frames(connection, topic, 1, 4096)


def measure(
    connections: int,
    partitions: int,
    times: int,
    kind: Callable[[int, str], Callable[[RawConnection], NextFrame]],
    broker: BrokerUnderTest,
    topic: str,
) -> Figures:
    return send_requests(connections, times, kind(partitions, topic), broker)


CONNECTIONS = [
    Case(
        f"{name}, {BUSY_CONNECTIONS} busy connections",
        partial(measure, BUSY_CONNECTIONS, 1, 60_000, kind),
        partial(topic_with, 1),
        REPEAT,
    )
    for name, kind in {
        "produce": produce,
        "produce idempotent acks=all": produce_idempotent,
        "produce 10 records lz4": produce_compressed,
        "fetch": fetch,
        "fetch in a session by topic id": fetch_in_session,
    }.items()
]

PARTITIONS = [
    Case(
        f"{kind.__name__}, {PARTITIONS_IN_REQUEST} partitions a request",
        partial(measure, FEW_CONNECTIONS, PARTITIONS_IN_REQUEST, times, kind),
        partial(topic_with, PARTITIONS_IN_REQUEST),
        REPEAT,
    )
    # Kafka takes tens of milliseconds for each of these fetches, most of it waiting.
    for kind, times in ((produce, 8_000), (fetch, 500))
]
