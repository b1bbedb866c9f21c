"""Settings of a client as commands are given them: a file, and pairs over it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.cli.work.connection import read_properties
from barnabas.cli.work.refused import Refused

JAVA_PRODUCER = {
    "acks": "all",
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "delivery.timeout.ms": "120000",
    "linger.ms": "5",
    "max.block.ms": "60000",
}
"""What Java's producer does unless it is told otherwise, where ours differs."""

JAVA_CONSUMER = {
    "isolation.level": "read_uncommitted",
    "partition.assignment.strategy": "range,cooperative-sticky",
}
"""What Java's consumer does unless it is told otherwise, where ours differs."""


def given(
    file: Path | str | None, pairs: Iterable[str], defaults: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The defaults, what the file says, and what `name=value` says, later ones winning."""
    settings: dict[str, Any] = dict(defaults or {})
    if file is not None:
        settings.update(read_properties(file))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Refused(f"Invalid property {pair!r}: it must be name=value.")
        settings[name.strip()] = value
    return settings
