"""Options by their names, in whichever case they were written, and how the value of one is read."""

import re
from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

CLIENT_PREFIX = "kafka."
"""How options for the client begin."""

REGISTRY_PREFIX = "schema.registry."
"""How options for the registry's client begin."""

FORMAT_OPTIONS = tuple(
    f"{column}{what}"
    for column in ("key", "value")
    for what in ("Format", "Subject", "Schema", "Message")
)
"""What is said of a column whose values have a format."""


class OptionError(ValueError):
    """An option that is unknown, missing, or does not have a value it may have."""


class ParsedOptions:
    """Options by their names, each read as what it is."""

    def __init__(self, given: Mapping[str, str], known: Collection[str], *, purpose: str) -> None:
        require_known(given, known, purpose=purpose)
        self._given = {name.lower(): value for name, value in given.items()}

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def with_prefix(self, prefix: str) -> dict[str, str]:
        """Those that begin with it, by the rest of their names."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._given.items()
            if name.startswith(prefix)
        }

    def client_settings(self, refused: Mapping[str, str]) -> dict[str, str]:
        """What is passed on to a client, in Kafka's names; `refused` says what to do instead."""
        passed = self.with_prefix(CLIENT_PREFIX)
        for name in passed.keys() & refused.keys():
            raise OptionError(f"{CLIENT_PREFIX}{name} must not be set: {refused[name]}.")
        if not passed.get("bootstrap.servers", "").strip():
            raise OptionError(
                f"{CLIENT_PREFIX}bootstrap.servers must say where the brokers are: host:port,..."
            )
        return passed

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the words; the first of them unless told."""
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
        """A number of things, at least one; None unless told."""
        if self.text(name) is None:
            return None
        value = self.integer(name, 0)
        if value == 0:
            raise OptionError(f"{name} must be positive.")
        return value

    def duration_ms(self, name: str, default_ms: int) -> int:
        """As Spark writes times: 500ms, 30s, 15m, 2h, 1d; a plain number counts milliseconds."""
        value = self.text(name)
        if value is None:
            return default_ms
        found = re.fullmatch(r"(\d{1,15})\s*([a-z]*)", value.lower(), re.ASCII)
        unit_ms = _UNITS_MS.get(found[2]) if found else None
        if found is None or unit_ms is None:
            raise OptionError(f"{name} must be a time such as 500ms, 30s or 15m, not {value!r}.")
        return int(int(found[1]) * unit_ms)


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


def require_known(given: Iterable[str], known: Collection[str], *, purpose: str) -> None:
    """OptionError for the first that is not known, with the name that was probably meant."""
    by_lower = {name.lower(): name for name in known}
    for name in given:
        if name.lower() in by_lower or name.lower().startswith((CLIENT_PREFIX, REGISTRY_PREFIX)):
            continue
        near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
        advice = f" Did you mean {by_lower[near[0]]!r}?" if near else ""
        raise OptionError(f"{name!r} is not an option of {purpose}.{advice}")
