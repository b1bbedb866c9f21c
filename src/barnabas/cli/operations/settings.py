"""Settings of a client as commands are given them: a file, and pairs over it."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from barnabas.cli.operations.errors import CommandError
from barnabas.config import BrokerSettings, ConfigError

JAVA_PRODUCER_DEFAULTS = {
    "acks": "all",
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "delivery.timeout.ms": "120000",
    "linger.ms": "5",
    "max.block.ms": "60000",
}
"""What Java's producer does unless it is told otherwise, where ours differs."""

JAVA_CONSUMER_DEFAULTS = {
    "isolation.level": "read_uncommitted",
    "partition.assignment.strategy": "range,cooperative-sticky",
}
"""What Java's consumer does unless it is told otherwise, where ours differs."""


def client_settings(
    file: Path | str | None, pairs: Iterable[str], defaults: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The defaults, what the file says, and what `name=value` says, later ones winning."""
    settings: dict[str, Any] = dict(defaults or {})
    if file is not None:
        settings.update(read_properties(file))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"Invalid property {pair!r}: it must be name=value.")
        settings[name.strip()] = value
    return settings


def load_settings(file: Path, overrides: dict[str, str]) -> BrokerSettings:
    return check_settings(read_properties(file) | overrides)


def check_settings(properties: dict[str, str]) -> BrokerSettings:
    """Typed settings, or one error that names everything wrong with them."""
    try:
        return BrokerSettings.from_properties(properties)
    except ConfigError as error:
        raise CommandError(str(error)) from None


def parse_pairs(pairs: list[str] | tuple[str, ...]) -> dict[str, str]:
    """What `key=value`, given any number of times, says."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{pair!r} is not KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def read_properties(file: str | Path) -> dict[str, str]:
    """The pairs of a .properties file, such as `--command-config` names."""
    from barnabas.config.properties import parse

    try:
        # Java's encoding of properties, so that the file means to us what it means to Kafka.
        return parse(Path(file).read_text(encoding="latin-1"))
    except (OSError, ValueError) as error:
        raise CommandError(f"cannot read {file}: {error}") from None
