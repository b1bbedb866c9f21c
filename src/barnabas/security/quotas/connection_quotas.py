"""How many connections are accepted per second: by this broker, by a listener, of an IP address."""

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from barnabas.security.quotas.client_quotas import MAX_SENSORS, Quotas
from barnabas.security.quotas.entities import IP, QuotaKey
from barnabas.security.quotas.rate import DEFAULT_WINDOW, RateWindow, SampledRate

UNLIMITED: Final = 2**31 - 1


class ConnectionQuotas:
    """The rates of accepted connections, and their bounds."""

    __slots__ = (
        "_broker_bound",
        "_by_ip",
        "_exempt_listener",
        "_ip_bounds",
        "_listener_bounds",
        "_window",
        "broker",
        "has_ip_quotas",
        "ip_throttle_times",
        "listeners",
        "throttle_times",
    )

    def __init__(self, window: RateWindow = DEFAULT_WINDOW) -> None:
        self._window = window
        self._broker_bound = UNLIMITED
        self._listener_bounds: Mapping[str, int] = {}
        self._exempt_listener: str | None = None
        self._ip_bounds: dict[str | None, float] = {}
        self._by_ip: dict[str, SampledRate] = {}  # idle longest first
        self.has_ip_quotas = False
        self.broker = SampledRate(window)
        self.listeners: dict[str, SampledRate] = {}
        self.throttle_times: dict[str, SampledRate] = {}
        """How long listeners had to wait."""
        self.ip_throttle_times: dict[str, SampledRate] = {}
        """How long connections were held because of their address, by listener."""

    def set_bounds(
        self, broker: int, listeners: Mapping[str, int], exempt_listener: str | None
    ) -> None:
        """Sets the bounds; those of listeners are by their names in lower case.

        One listener ignores the bound of the whole broker.
        """
        self._broker_bound = broker
        self._listener_bounds = listeners
        self._exempt_listener = exempt_listener

    def set_ip_quotas(self, quotas: Quotas) -> None:
        bounds: dict[str | None, float] = {}
        for entity, values in quotas.items():
            bound = values.get(QuotaKey.CONNECTION_CREATION_RATE)
            if bound is not None and entity[0][0] == IP:
                bounds[_normalized(entity[0][1])] = bound
        self._ip_bounds = bounds
        self.has_ip_quotas = bool(bounds)
        if not bounds:
            self._by_ip.clear()

    def record_accepted(self, listener: str, now_ms: int) -> int:
        """Records a connection. Returns how long the listener has to wait for the next one."""
        rate = self.listeners.setdefault(listener, SampledRate(self._window))
        rate.record(1, now_ms)
        delay_ms = rate.delay_ms(self._listener_bounds.get(listener.lower(), UNLIMITED), now_ms)
        self.broker.record(1, now_ms)
        if listener != self._exempt_listener:
            delay_ms = max(delay_ms, self.broker.delay_ms(self._broker_bound, now_ms))
        delay_ms = min(delay_ms, self._window.sample_ms)
        if delay_ms:
            waited = self.throttle_times.setdefault(listener, SampledRate(self._window))
            waited.record(delay_ms, now_ms)
        return delay_ms

    def record_ip(self, listener: str, host: str, now_ms: int) -> int:
        """Records a connection of an address. Returns 0, or after how long to close it.

        A connection that is closed does not count.
        """
        bound = self._ip_bounds.get(host, self._ip_bounds.get(None))
        if bound is None:
            return 0
        rate = self._by_ip.pop(host, None) or SampledRate(self._window)
        if len(self._by_ip) >= MAX_SENSORS:
            del self._by_ip[next(iter(self._by_ip))]
        self._by_ip[host] = rate
        rate.record(1, now_ms)
        delay_ms = min(rate.delay_ms(bound, now_ms), self._window.sample_ms)
        if delay_ms:
            rate.record(-1, now_ms)
            waited = self.ip_throttle_times.setdefault(listener, SampledRate(self._window))
            waited.record(delay_ms, now_ms)
        return delay_ms

    def ip_rates(self, now_ms: int) -> Iterator[tuple[str, float]]:
        """Yields the rates of the addresses that have quotas and connected lately."""
        for host, rate in self._by_ip.items():
            yield host, rate.per_second(now_ms)


def _normalized(host: str | None) -> str | None:
    """Returns an address as sockets report it; another text matches no address."""
    try:
        return None if host is None else str(ip_address(host))
    except ValueError:
        return host
