"""Counts authentications of one listener, under the names of Kafka's socket-server-metrics."""

from collections.abc import Iterator

from barnabas.server.metrics.registry import Gauge

_PREFIX = "kafka_server_socket_server_metrics_"


class AuthenticationMetrics:
    """Counters since the start."""

    __slots__ = (
        "_reauthentication_max_ns",
        "_reauthentication_total_ns",
        "authentications_without_reauthentication",
        "expired_connections_killed",
        "failed_authentications",
        "failed_reauthentications",
        "successful_authentications",
        "successful_reauthentications",
    )

    def __init__(self) -> None:
        self.successful_authentications = 0
        self.failed_authentications = 0
        self.successful_reauthentications = 0
        self.failed_reauthentications = 0
        self.authentications_without_reauthentication = 0
        """Clients that are too old to re-authenticate."""
        self.expired_connections_killed = 0
        self._reauthentication_total_ns = 0
        self._reauthentication_max_ns = 0

    def record_reauthentication(self, duration_ns: int) -> None:
        self.successful_reauthentications += 1
        self._reauthentication_total_ns += duration_ns
        self._reauthentication_max_ns = max(self._reauthentication_max_ns, duration_ns)

    def gauges(self, labels: dict[str, str]) -> Iterator[Gauge]:
        total_ms = self._reauthentication_total_ns / 1_000_000
        values = {
            "successful_authentication_total": self.successful_authentications,
            "failed_authentication_total": self.failed_authentications,
            "successful_reauthentication_total": self.successful_reauthentications,
            "failed_reauthentication_total": self.failed_reauthentications,
            "successful_authentication_no_reauth_total": (
                self.authentications_without_reauthentication
            ),
            "expired_connections_killed_count": self.expired_connections_killed,
            "reauthentication_latency_avg": total_ms / max(1, self.successful_reauthentications),
            "reauthentication_latency_max": self._reauthentication_max_ns / 1_000_000,
        }
        for name, value in values.items():
            yield Gauge(_PREFIX + name, value, labels)
