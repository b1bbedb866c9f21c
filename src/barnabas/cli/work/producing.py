"""Sending lines as records, as the console commands do."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.cli.work.lines import Line

_LAST_S = 5

Delivered = Callable[[Any, Any], None]
"""Told of each record: what went wrong with it, or None, and the message."""


def send(
    producer: Any, topic: str, record: Line, delivered: Delivered, partition: int = -1
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


def close(producer: Any) -> None:
    """Close it, whatever interrupted it; what is on its way has a few seconds to arrive."""
    producer.flush(_LAST_S)
    producer.purge()
    producer.close()


def typed() -> Iterator[bytes]:
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
