"""Options by their names: which there are, and how the value of one is read."""

import re
from collections.abc import Mapping

from barnabas.spark.naming import OptionError, require_known

STRATEGIES = ("subscribe", "subscribePattern", "assign")
STARTING = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
ENDING = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
TYPED = tuple(
    f"{column}{what}"
    for column in ("key", "value")
    for what in ("Format", "Subject", "Schema", "Message")
)
HARMLESS = ("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
"""Of the connector, and without effect: our client asks again by itself, and joins no group."""

KNOWN = frozenset(
    (
        *STRATEGIES,
        *STARTING,
        *ENDING,
        *TYPED,
        *HARMLESS,
        "startingOffsetsByTimestampStrategy",
        "failOnDataLoss",
        "minPartitions",
        "maxRecordsPerPartition",
        "maxOffsetsPerTrigger",
        "minOffsetsPerTrigger",
        "maxTriggerDelay",
        "includeHeaders",
        "kafkaConsumer.pollTimeoutMs",
        "commitGroupId",
        "longPollMs",
        "mode",
        "columnNameOfCorruptRecord",
    )
)


class Told:
    """Options by their names, each read as what it is."""

    def __init__(self, given: Mapping[str, str]) -> None:
        require_known(given, KNOWN, purpose="reading")
        self.given = {name.lower(): value for name, value in given.items()}

    def text(self, name: str) -> str | None:
        value = self.given.get(name.lower())
        return None if value is None else value.strip()

    def word(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of the words; the first of them unless told."""
        value = (self.text(name) or allowed[0]).lower()
        if value not in allowed:
            raise OptionError(f"{name} must be {' or '.join(allowed)}, not {self.text(name)!r}.")
        return value

    def whole(self, name: str, default: int) -> int:
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"\d{1,18}", value, re.ASCII):
            raise OptionError(f"{name} must be a whole number, not {value!r}.")
        return int(value)

    def count(self, name: str) -> int | None:
        """A number of things, at least one; None unless told."""
        if self.text(name) is None:
            return None
        value = self.whole(name, 0)
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
