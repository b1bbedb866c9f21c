"""Consuming and producing record by record, as the console commands do."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.lines import InputRecord
from barnabas.cli.signals import raise_if_output_closed

_POLL_S = 0.2
"""How long one poll waits for records."""

_MAX_POLL_RECORDS = 500


class ConsumeTimeout(Exception):  # noqa: N818 - a stop condition, not an error
    """No record arrived within the timeout."""


@dataclass(slots=True, frozen=True)
class StopCondition:
    """When to stop consuming."""

    records: int | None = None
    timeout_ms: int | None = None
    """Time without a record."""
    at_end: bool = False
    """At the end of every partition. Needs `enable.partition.eof`."""


def consume(
    consumer: Any, until: StopCondition, on_idle: Callable[[], None] = lambda: None
) -> Iterator[list[Any]]:
    """Yields messages as they arrive, in lists. Calls `on_idle` when none arrives.

    Raises ConsumeTimeout, CommandError on errors, and BrokenPipeError if the output is closed.
    """
    seen, last_s = 0, time.monotonic()
    ended: set[tuple[str, int]] = set()
    while until.records is None or seen < until.records:
        max_records = (
            _MAX_POLL_RECORDS
            if until.records is None
            else min(_MAX_POLL_RECORDS, until.records - seen)
        )
        consumed = consumer.consume(max_records, _POLL_S)
        if messages := [message for message in consumed if _is_record(message, ended)]:
            yield messages
            seen += len(messages)
            last_s = time.monotonic()
        else:
            raise_if_output_closed()
            on_idle()
        if until.at_end and ended and ended >= _assigned(consumer):
            return
        if until.timeout_ms is not None and _ms_since(last_s) >= until.timeout_ms:
            raise ConsumeTimeout


def _is_record(message: Any, ended: set[tuple[str, int]]) -> bool:
    error = message.error()
    if error is None:
        ended.discard((message.topic(), message.partition()))
        return True
    if error.name() == "_PARTITION_EOF":
        ended.add((message.topic(), message.partition()))
    elif error.name() != "UNKNOWN_TOPIC_OR_PART":  # the topic may still be created
        raise CommandError(error.str())
    return False


def _assigned(consumer: Any) -> set[tuple[str, int]]:
    return {(partition.topic, partition.partition) for partition in consumer.assignment()}


def _ms_since(moment_s: float) -> float:
    return (time.monotonic() - moment_s) * 1000


_METADATA_TIMEOUT_S = 1.0


def is_missing(client: Any, topic: str) -> bool | None:
    """Returns whether the topic does not exist; None if no broker responds in time."""
    from barnabas.client.errors import KafkaError, KafkaException

    try:
        metadata = client.list_topics(topic, timeout=_METADATA_TIMEOUT_S)
    except KafkaException:
        return None
    return bool(metadata.topics[topic].error == KafkaError.UNKNOWN_TOPIC_OR_PART)


_CLOSE_TIMEOUT_S = 5

DeliveryCallback = Callable[[Any, Any], None]
"""Called with the error or None, and the message."""


def send(
    producer: Any,
    topic: str,
    record: InputRecord,
    on_delivery: DeliveryCallback,
    partition: int = -1,
) -> None:
    """Produces a record; waits while the queue is full."""
    key, value, headers = record
    while True:
        try:
            producer.produce(topic, value, key, partition, on_delivery, headers=headers)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def close_producer(producer: Any) -> None:
    """Closes the producer; records in flight have a few seconds to be delivered.

    They have none in a `finally` after an error of the client: it cannot log in, for example.
    """
    from barnabas.client.errors import KafkaException

    if not isinstance(sys.exception(), KafkaException):
        producer.flush(_CLOSE_TIMEOUT_S)
    producer.purge()
    producer.close()


def input_lines() -> Iterator[bytes]:
    """Yields the lines of standard input, with a prompt on a terminal."""
    lines = sys.stdin.buffer
    if not sys.stdin.isatty():
        yield from lines
        return
    while True:
        print(">", end="", flush=True)
        if not (line := lines.readline()):
            return
        yield line
