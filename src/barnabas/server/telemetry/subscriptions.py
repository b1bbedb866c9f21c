"""The subscriptions of client metrics: which clients push which metrics, and how often."""

import logging
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from barnabas.config import ConfigResourceType

log = logging.getLogger(__name__)

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000


class Pattern(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str) -> Any: ...


@dataclass(slots=True, frozen=True)
class TelemetryClient:
    """What a subscription can select clients by."""

    client_id: str
    client_software_name: str
    client_software_version: str
    client_source_address: str
    client_source_port: str


@dataclass(slots=True, frozen=True)
class ClientMetricsSubscription:
    """One configured subscription, the resource `client-metrics`."""

    metrics: tuple[str, ...]  # prefixes of names
    interval_ms: int
    patterns: Mapping[str, Pattern]  # by the field of the client

    def matches(self, instance_id: str, client: TelemetryClient) -> bool:
        return all(
            pattern.fullmatch(
                instance_id if field == "client_instance_id" else getattr(client, field)
            )
            for field, pattern in self.patterns.items()
        )


@dataclass(slots=True, frozen=True)
class MetricsRequest:
    """What one client is asked to push: the union of the subscriptions that match it."""

    id: int
    metrics: tuple[str, ...]
    interval_ms: int


class ClientMetricsSubscriptions:
    """All subscriptions of the cluster's metadata."""

    def __init__(
        self, subscriptions: Mapping[str, ClientMetricsSubscription] | None = None
    ) -> None:
        self._subscriptions = dict(subscriptions or {})

    def __len__(self) -> int:
        return len(self._subscriptions)

    @classmethod
    def of(
        cls, configs: Mapping[tuple[int, str], Mapping[str, str]]
    ) -> "ClientMetricsSubscriptions":
        """Reads the dynamic settings of client metrics; one that cannot be used is logged."""
        found = {}
        for (kind, name), settings in configs.items():
            if kind == ConfigResourceType.CLIENT_METRICS and settings:
                try:
                    found[name] = _subscription(settings)
                except ValueError as error:
                    log.warning("Client metrics subscription %s is not used: %s", name, error)
        return cls(found)

    def request_for(self, instance_id: str, client: TelemetryClient, seed: int) -> MetricsRequest:
        """Returns what a client pushes. `seed` makes the id differ between clients."""
        matching = [
            item for item in self._subscriptions.values() if item.matches(instance_id, client)
        ]
        names = sorted({name for item in matching for name in item.metrics})
        metrics = (ALL_METRICS,) if ALL_METRICS in names else tuple(names)
        interval_ms = min((item.interval_ms for item in matching), default=DEFAULT_INTERVAL_MS)
        checksum = zlib.crc32(f"{metrics}{interval_ms}".encode()) ^ seed
        return MetricsRequest(_signed(checksum), metrics, interval_ms)


def _subscription(settings: Mapping[str, str]) -> ClientMetricsSubscription:
    """Raises ValueError for a regular expression that cannot be compiled in linear time."""
    import re2

    options = re2.Options()
    options.log_errors = False
    patterns: dict[str, Pattern] = {}
    for pair in _items(settings.get("match", "")):
        field, _, text = pair.partition("=")
        try:
            patterns[field.strip()] = re2.compile(text.strip(), options)
        except re2.error:
            raise ValueError(f"the expression {text.strip()} is not supported") from None
    interval_ms = int(settings.get("interval.ms") or DEFAULT_INTERVAL_MS)
    return ClientMetricsSubscription(
        tuple(_items(settings.get("metrics", ""))), interval_ms, patterns
    )


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def _signed(value: int) -> int:
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value
