"""Parses Spark options: names in any case, values by type."""

import re
from collections.abc import Collection, Iterable, Mapping

from barnabas.config.unknown_names import find_similar

CLIENT_PREFIX = "kafka."
"""Prefix of options that are passed to the Kafka client."""

REGISTRY_PREFIX = "schema.registry."
"""Prefix of options that are passed to the registry's client."""

FORMAT_OPTIONS = tuple(
    f"{column}{suffix}"
    for column in ("key", "value")
    for suffix in ("Format", "Subject", "Schema", "Message")
)
"""The options of a key or value column that has a format."""


class OptionError(ValueError):
    """An option is unknown or missing, or its value is invalid."""


class ParsedOptions:
    """Options by name, with one method for each type of value."""

    def __init__(self, options: Mapping[str, str], names: Collection[str], *, purpose: str) -> None:
        require_known_options(options, names, purpose=purpose)
        self._options = {name.lower(): value for name, value in options.items()}

    def text(self, name: str) -> str | None:
        value = self._options.get(name.lower())
        return None if value is None else value.strip()

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Returns the options that start with the prefix, by the rest of their names."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._options.items()
            if name.startswith(prefix)
        }

    def client_settings(self, rejected: Mapping[str, str]) -> dict[str, str]:
        """Returns the settings of the client, by Kafka's names.

        Raises OptionError for a setting in `rejected`, with its advice.
        """
        settings = self.with_prefix(CLIENT_PREFIX)
        for name in settings.keys() & rejected.keys():
            raise OptionError(f"{CLIENT_PREFIX}{name} must not be set: {rejected[name]}.")
        if not settings.get("bootstrap.servers", "").strip():
            raise OptionError(
                f"{CLIENT_PREFIX}bootstrap.servers must be the brokers' addresses: host:port,..."
            )
        return settings

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Returns one of the allowed words; the first is the default."""
        value = (self.text(name) or allowed[0]).lower()
        if value not in allowed:
            raise OptionError(f"{name} must be {' or '.join(allowed)}, not {self.text(name)!r}.")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        words = ("true", "false") if default else ("false", "true")
        return self.choice(name, words) == "true"

    def integer(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"\d{1,18}", value, re.ASCII):
            raise OptionError(f"{name} must be a whole number, not {value!r}.")
        return int(value)

    def positive_integer(self, name: str) -> int | None:
        """Returns None if the option is not set."""
        if self.text(name) is None:
            return None
        value = self.integer(name, 0)
        if value == 0:
            raise OptionError(f"{name} must be positive.")
        return value

    def duration_ms(self, name: str, default_ms: int) -> int:
        """Parses Spark's durations: 500ms, 30s, 15m, 2h, 1d; a plain number is milliseconds."""
        value = self.text(name)
        if value is None:
            return default_ms
        match = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", value.lower(), re.ASCII)
        unit_ms = _UNITS_MS.get(match[2]) if match else None
        if match is None or unit_ms is None:
            raise OptionError(f"{name} must be a time such as 500ms, 30s or 15m, not {value!r}.")
        return int(int(match[1]) * unit_ms)


_UNITS_MS = {
    "us": 0.001,
    "": 1,
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}


_INSTEAD = {
    **{
        name: CLIENT_PREFIX + name
        for name in ("bootstrap.servers", "group.id", "security.protocol")
    },
    "topic": "subscribe",
    **dict.fromkeys(("subscribe", "subscribepattern", "assign"), "topic"),
}
"""For settings of clients without the prefix, and options of reading when writing, or of writing
when reading: the option that is meant."""


def require_known_options(options: Iterable[str], names: Collection[str], *, purpose: str) -> None:
    """Raises OptionError for the first unknown option, and suggests the closest known name."""
    known = {name.lower() for name in names}
    for name in options:
        if name.lower() in known or name.lower().startswith((CLIENT_PREFIX, REGISTRY_PREFIX)):
            continue
        similar = _INSTEAD.get(name.lower()) or find_similar(name, names)
        advice = f" Did you mean {similar!r}?" if similar is not None else ""
        raise OptionError(f"{name!r} is not an option of {purpose}.{advice}")
