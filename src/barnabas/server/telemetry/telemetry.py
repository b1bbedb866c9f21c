"""Client telemetry of one broker: subscriptions, clients, and what they have pushed."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.server.metrics.registry import Gauge
from barnabas.server.telemetry.instances import TelemetryInstances
from barnabas.server.telemetry.otlp import MetricPoint, OtlpDecoder
from barnabas.server.telemetry.pushed_metrics import PushedMetrics
from barnabas.server.telemetry.subscriptions import ClientMetricsSubscriptions

EXPIRY_CHECK_MS: Final = 10_000

POINTS_OF_STEP: Final = 100
"""Points that are stored before other requests get their turn: a millisecond at most."""


class ClientTelemetry:
    """What the handlers use. Iterating returns the metrics for /metrics."""

    def __init__(self, max_bytes: int = 1 << 20) -> None:
        self.pushed = PushedMetrics()
        self.instances = TelemetryInstances(self.pushed.remove, max_bytes=max_bytes)
        self.has_subscriptions = False
        """Whether any client is to push metrics."""
        self._checked_ms = 0

    def update(self, configs: Mapping[tuple[int, str], Mapping[str, str]]) -> None:
        """Applies the subscriptions of new metadata."""
        subscriptions = ClientMetricsSubscriptions.of(configs)
        self.has_subscriptions = bool(subscriptions)
        self.instances.update(subscriptions)

    def tick(self, now_ms: int) -> None:
        """Forgets expired clients, once in a while. Called with every request."""
        if now_ms - self._checked_ms >= EXPIRY_CHECK_MS:
            self._checked_ms = now_ms
            self.instances.remove_expired(now_ms)

    def __iter__(self) -> Iterator[Gauge]:
        yield Gauge("kafka_server_client_telemetry_instances", len(self.instances))
        yield from self.pushed


def decode(content: bytes, loop: asyncio.AbstractEventLoop) -> "asyncio.Future[list[MetricPoint]]":
    """Decodes a push in steps of the loop. The future may have KafkaError INVALID_RECORD."""
    decoder = OtlpDecoder(content)
    steps = decoder.steps()
    decoded: asyncio.Future[list[MetricPoint]] = loop.create_future()

    def advance() -> None:
        if decoded.done():
            return  # the client has disconnected
        try:
            next(steps)
        except StopIteration:
            decoded.set_result(decoder.points)
        except Exception as failure:
            decoded.set_exception(failure)
        else:
            loop.call_soon(advance)

    loop.call_soon(advance)
    return decoded
