"""Clients of another library, that do what an administrator looks at."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka

SILENT = {"log_level": 0}


def produce(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **SILENT})
    for number in range(count):
        producer.produce(topic, str(number).encode(), partition=partition)
    assert producer.flush(30) == 0


@contextmanager
def member(bootstrap: str, group: str, topic: str, **settings: Any) -> Iterator[Any]:
    """A consumer that has its partitions; it leaves at the end."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
            **SILENT,
        }
    )
    assigned: list[Any] = []
    consumer.subscribe([topic], on_assign=lambda _, partitions: assigned.extend(partitions))
    for _ in range(200):
        consumer.poll(0.05)
        if assigned:
            break
    assert assigned, "no partitions were assigned in time"
    yield consumer
    consumer.close()


@contextmanager
def open_transaction(bootstrap: str, transactional_id: str, topic: str) -> Iterator[Any]:
    """A producer that has written one record to partition 0 and not decided yet."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **SILENT}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"undecided", partition=0)
    assert producer.flush(30) == 0
    yield producer
