"""How fast listeners and addresses may connect."""

import pytest

from barnabas.security.quotas import connection_quotas
from barnabas.security.quotas.connection_quotas import UNLIMITED, ConnectionQuotas

NOW_MS = 1_000_000
RATE = "connection_creation_rate"


def accept(quotas: ConnectionQuotas, listener: str, count: int) -> int:
    """Returns the delay after the last of some connections."""
    return [quotas.record_accepted(listener, NOW_MS) for _ in range(count)][-1]


def test_a_listener_waits_at_most_a_sample() -> None:
    quotas = ConnectionQuotas()
    quotas.set_bounds(UNLIMITED, {"internal": 1}, None)
    assert accept(quotas, "INTERNAL", 10) == 0
    assert accept(quotas, "INTERNAL", 1) == 1000
    assert accept(quotas, "EXTERNAL", 1000) == 0
    assert quotas.throttle_times["INTERNAL"].average(NOW_MS) == 1000


def test_the_exempt_listener_ignores_the_bound_of_the_broker() -> None:
    quotas = ConnectionQuotas()
    quotas.set_bounds(1, {}, "INTERNAL")
    assert accept(quotas, "INTERNAL", 100) == 0
    assert accept(quotas, "EXTERNAL", 1) == 1000  # what the other listener accepted counts, too


def test_an_address_over_its_rate_is_closed_later_and_not_counted() -> None:
    quotas = ConnectionQuotas()
    assert not quotas.has_ip_quotas
    quotas.set_ip_quotas({(("ip", None),): {RATE: 1.0}, (("ip", "0:0::1"),): {RATE: 2.0}})
    assert quotas.has_ip_quotas
    assert [quotas.record_ip("L", "10.0.0.1", NOW_MS) for _ in range(12)] == [0] * 10 + [1000] * 2
    assert [quotas.record_ip("L", "::1", NOW_MS) for _ in range(21)] == [0] * 20 + [500]
    assert quotas.record_ip("L", "10.0.0.1", NOW_MS + 11_000) == 0
    quotas.set_ip_quotas({(("ip", "10.0.0.1"),): {RATE: 1.0}, (("user", "a"),): {"x": 1.0}})
    assert quotas.record_ip("L", "10.0.0.2", NOW_MS) == 0


def test_the_rates_of_addresses_and_their_delays_are_measured() -> None:
    quotas = ConnectionQuotas()
    quotas.set_ip_quotas({(("ip", None),): {RATE: 1.0}})
    for _ in range(11):
        quotas.record_ip("EXTERNAL", "10.0.0.1", NOW_MS)
    assert dict(quotas.ip_rates(NOW_MS)) == {"10.0.0.1": 1.0}
    assert quotas.ip_throttle_times["EXTERNAL"].average(NOW_MS) == 1000


def test_addresses_are_bounded_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_quotas, "MAX_SENSORS", 2)
    quotas = ConnectionQuotas()
    quotas.set_ip_quotas({(("ip", None),): {RATE: 1.0}})
    for number in range(10):
        quotas.record_ip("L", f"10.0.0.{number}", NOW_MS)
    assert len(quotas._by_ip) == 2
