"""A node's settings, from its server.properties and what is said over it."""

from pathlib import Path

from barnabas.cli.work.connection import read_properties
from barnabas.cli.work.refused import Refused
from barnabas.config import BrokerSettings, ConfigError


def load_settings(file: Path, overrides: dict[str, str]) -> BrokerSettings:
    return check_settings(read_properties(file) | overrides)


def check_settings(properties: dict[str, str]) -> BrokerSettings:
    """Typed settings, or one error that names everything wrong with them."""
    try:
        return BrokerSettings.from_properties(properties)
    except ConfigError as error:
        raise Refused(str(error)) from None


def parse_pairs(pairs: list[str] | tuple[str, ...]) -> dict[str, str]:
    """What `key=value`, given any number of times, says."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise Refused(f"{pair!r} is not KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed
