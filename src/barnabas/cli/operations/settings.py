"""Settings of clients and nodes, from files and options."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.operations.errors import CommandError, UnreadableFileError

if TYPE_CHECKING:
    from barnabas.config import BrokerSettings


JAVA_PRODUCER_DEFAULTS = {
    "acks": "all",
    "batch.size": "16384",
    "buffer.memory": "33554432",
    "delivery.timeout.ms": "120000",
    "linger.ms": "5",
    "max.block.ms": "60000",
}
"""Defaults of the Java producer that differ from ours."""

JAVA_CONSUMER_DEFAULTS = {
    "isolation.level": "read_uncommitted",
    "partition.assignment.strategy": "range,cooperative-sticky",
}
"""Defaults of the Java consumer that differ from ours."""


def client_settings(
    file: Path | str | None, pairs: Iterable[str], defaults: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Merges defaults, a file and `name=value` pairs; later ones win."""
    settings: dict[str, Any] = dict(defaults or {})
    if file is not None:
        settings.update(read_properties(file))
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise CommandError(f"Invalid property {pair!r}: it must be name=value.")
        settings[name.strip()] = value
    return settings


def load_settings(file: Path, overrides: dict[str, str]) -> "BrokerSettings":
    """Returns the settings of a server.properties file.

    Raises one CommandError that names all problems, with their lines.
    """
    from barnabas.config import BrokerSettings, ConfigError

    try:
        return BrokerSettings.from_properties(read_properties(file) | overrides)
    except ConfigError as error:
        problems = [
            f"  {_line_of(problem, file, overrides)}{problem}" for problem in error.problems
        ]
        raise CommandError("\n".join([f"{file} cannot be used:", *problems])) from None


def _line_of(problem: str, file: Path, overrides: Mapping[str, str]) -> str:
    """Returns `line 3: ` for a problem that names a setting of the file."""
    from barnabas.config.properties import line_numbers

    lines = line_numbers(file.read_text(encoding="latin-1"))
    names = (word.strip(".,:;()") for word in problem.split())
    name = next((name for name in names if name in lines and name not in overrides), None)
    return f"line {lines[name]}: " if name is not None else ""


def check_settings(properties: dict[str, str]) -> "BrokerSettings":
    """Returns typed settings. Raises one CommandError that names all problems."""
    from barnabas.config import BrokerSettings, ConfigError

    try:
        return BrokerSettings.from_properties(properties)
    except ConfigError as error:
        raise CommandError(str(error)) from None


def parse_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Parses `key=value` options."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"{shown_without_value(pair)} is not KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def shown_without_value(pair: str) -> str:
    """Returns a pair that is malformed as an error may show it: it may have a password."""
    name = re.match(r"[\w.-]*", pair)
    assert name is not None
    rest = "" if name.end() == len(pair) else "..."
    return repr(name[0] + rest)


def read_properties(file: str | Path) -> dict[str, str]:
    """Reads a .properties file."""
    from barnabas.config.properties import parse_properties

    try:
        # The encoding of Java properties.
        return parse_properties(Path(file).read_text(encoding="latin-1"))
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    except ValueError as error:
        raise CommandError(f"cannot read {file}: {error}") from None
