"""The metrics that clients have pushed, as series of /metrics with the client's id as a label."""

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from barnabas.server.metrics.registry import Gauge
from barnabas.server.telemetry.otlp import MetricPoint

MAX_SERIES: Final = 10_000
"""Of all clients of a broker. Further series are counted and not shown."""

MAX_SERIES_OF_CLIENT: Final = 1_000
MAX_LABELS: Final = 12
MAX_NAME_CHARACTERS: Final = 200
MAX_VALUE_CHARACTERS: Final = 200

PREFIX: Final = "kafka_client_telemetry_"
_KAFKA_PREFIX = "org.apache.kafka."
_TOTAL = "_total"
_INVALID = re.compile(r"[^a-zA-Z0-9_]")

SeriesKey = tuple[str, tuple[tuple[str, str], ...]]


class ClientSeries:
    """The series of one client, each with its last value, or the sum of its deltas."""

    def __init__(self, client_id: str, instance_name: str) -> None:
        self.labels = {
            "client_id": client_id[:MAX_VALUE_CHARACTERS],
            "client_instance_id": instance_name,
        }
        self.values: dict[SeriesKey, float] = {}


class PushedMetrics:
    """The series of all clients. Iterating returns them as gauges."""

    def __init__(self) -> None:
        self._clients: dict[bytes, ClientSeries] = {}
        self._count = 0
        self.pushes = 0
        self.dropped_series = 0

    def add(
        self,
        instance_id: bytes,
        client_id: str,
        instance_name: str,
        points: Iterable[MetricPoint],
    ) -> None:
        """Applies points: a gauge and a cumulative sum replace their value, a delta is added."""
        series = self._clients.get(instance_id)
        if series is None:
            series = self._clients[instance_id] = ClientSeries(client_id, instance_name)
        values = series.values
        for point in points:
            key = _key(point)
            if key is None or not math.isfinite(point.value):
                continue
            if key not in values:
                if len(values) >= MAX_SERIES_OF_CLIENT or self._count >= MAX_SERIES:
                    self.dropped_series += 1
                    continue
                self._count += 1
                values[key] = 0.0
            values[key] = values[key] + point.value if point.is_delta else point.value

    def remove(self, instance_id: bytes) -> None:
        series = self._clients.pop(instance_id, None)
        if series is not None:
            self._count -= len(series.values)

    def __len__(self) -> int:
        """Returns the number of series."""
        return self._count

    def __iter__(self) -> Iterator[Gauge]:
        yield Gauge("kafka_server_client_telemetry_pushes_total", self.pushes)
        yield Gauge("kafka_server_client_telemetry_dropped_series_total", self.dropped_series)
        for series in self._clients.values():
            for (name, labels), value in series.values.items():
                yield Gauge(name, value, {**dict(labels), **series.labels})


def _key(point: MetricPoint) -> SeriesKey | None:
    """Returns the name and the labels as Prometheus has them; None if there is no name."""
    stem = _INVALID.sub("_", point.name.removeprefix(_KAFKA_PREFIX)[:MAX_NAME_CHARACTERS])
    if not stem.strip("_"):
        return None
    stem = stem.removesuffix(_TOTAL)
    name = PREFIX + stem + (_TOTAL if point.is_counter else "")
    labels: dict[str, str] = {}
    for key, value in point.labels:
        label = _INVALID.sub("_", key[:MAX_NAME_CHARACTERS]).lstrip("_0123456789")
        if label and (label in labels or len(labels) < MAX_LABELS):
            labels[label] = value[:MAX_VALUE_CHARACTERS]
    return name, tuple(sorted(labels.items()))
