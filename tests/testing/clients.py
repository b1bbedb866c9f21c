"""Clients of confluent_kafka with timeouts, as users of a test broker have them."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from tests.wait import wait_until

DEADLINE_S = 20
QUIET = {"log_level": 0}


def producer(bootstrap_servers: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": bootstrap_servers, **QUIET, **_dotted(settings)})


def produce(
    bootstrap_servers: str, topic: str, *values: bytes, **settings: Any
) -> list[KafkaError]:
    """Produces records, and returns the errors of failed deliveries."""
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    client = producer(bootstrap_servers, **settings)
    for value in values:
        client.produce(topic, value, on_delivery=delivered)
    assert client.flush(DEADLINE_S) == 0
    return failures


def consumer(bootstrap_servers: str, group: str = "readers", **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **QUIET,
            **_dotted(settings),
        }
    )


def values(bootstrap_servers: str, topic: str, count: int, **settings: Any) -> list[bytes | None]:
    """Returns the values of the first `count` records of partition 0."""
    client = consumer(bootstrap_servers, **settings)
    try:
        client.assign([TopicPartition(topic, 0, 0)])
        return [message.value() for message in client.consume(count, DEADLINE_S)]
    finally:
        client.close()


def poll_until(client: Consumer, condition: Callable[[], bool]) -> None:
    """Polls a group member until the condition is true."""

    def is_met_after_a_poll() -> bool:
        client.poll(0.1)
        return condition()

    wait_until(is_met_after_a_poll, "the group reaches the condition", DEADLINE_S, poll_s=0)


def _dotted(settings: dict[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "."): value for name, value in settings.items()}
