"""LineReader topics record after record, as the console commands do."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from barnabas.cli.operations.errors import CommandError
from barnabas.cli.operations.lines import InputRecord
from barnabas.cli.signals import raise_if_output_closed

_SLICE_S = 0.2
"""How long a wait for records lasts before the clock is looked at."""

_AT_ONCE = 500


class ConsumeTimeout(Exception):  # noqa: N818 - it is what was asked for
    """No record came for as long as there was patience."""


@dataclass(slots=True, frozen=True)
class StopCondition:
    """When to stop."""

    records: int | None = None
    timeout_ms: int | None = None
    """Without a record."""
    at_end: bool = False
    """Of every partition. The consumer has to have `enable.partition.eof`."""


def consume(consumer: Any, until: StopCondition) -> Iterator[list[Any]]:
    """Messages as they come, some at a time.

    Raises Late, Refused for what goes wrong, and BrokenPipeError where nobody reads the output.
    """
    seen, last_s = 0, time.monotonic()
    ended: set[tuple[str, int]] = set()
    while until.records is None or seen < until.records:
        most = _AT_ONCE if until.records is None else min(_AT_ONCE, until.records - seen)
        consumed = consumer.consume(most, _SLICE_S)
        if messages := [message for message in consumed if _is_record(message, ended)]:
            yield messages
            seen += len(messages)
            last_s = time.monotonic()
        else:
            raise_if_output_closed()
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
    elif error.name() != "UNKNOWN_TOPIC_OR_PART":  # which a patient reader waits out
        raise CommandError(error.str())
    return False


def _assigned(consumer: Any) -> set[tuple[str, int]]:
    return {(partition.topic, partition.partition) for partition in consumer.assignment()}


def _ms_since(moment_s: float) -> float:
    return (time.monotonic() - moment_s) * 1000


_LAST_S = 5

Delivered = Callable[[Any, Any], None]
"""Told of each record: what went wrong with it, or None, and the message."""


def send(
    producer: Any, topic: str, record: InputRecord, delivered: Delivered, partition: int = -1
) -> None:
    """Waits for room where too much is on its way."""
    key, value, headers = record
    while True:
        try:
            producer.produce(topic, value, key, partition, delivered, headers=headers)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def close_producer(producer: Any) -> None:
    """Close it, whatever interrupted it; what is on its way has a few seconds to arrive."""
    producer.flush(_LAST_S)
    producer.purge()
    producer.close()


def input_lines() -> Iterator[bytes]:
    """The lines of standard input, with a prompt where a person types them."""
    lines = sys.stdin.buffer
    if not sys.stdin.isatty():
        yield from lines
        return
    while True:
        print(">", end="", flush=True)
        if not (line := lines.readline()):
            return
        yield line
