"""Which quota applies to a client, who shares it, and how many are measured."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.metadata.states import QuotaEntity
from barnabas.security.quotas import client_quotas
from barnabas.security.quotas.client_quotas import QuotaTable, RateQuota
from barnabas.security.quotas.entities import QuotaKey

KEY = QuotaKey.PRODUCER_BYTE_RATE
NOW_MS = 1_000_000

ALICE, DEFAULT_USER = ("user", "alice"), ("user", None)
APP, DEFAULT_CLIENT = ("client-id", "app"), ("client-id", None)

PRECEDENCE: list[tuple[QuotaEntity, tuple[str, str]]] = [
    ((APP, ALICE), ("alice", "app")),
    ((DEFAULT_CLIENT, ALICE), ("alice", "app")),
    ((ALICE,), ("alice", "")),
    ((APP, DEFAULT_USER), ("alice", "app")),
    ((DEFAULT_CLIENT, DEFAULT_USER), ("alice", "app")),
    ((DEFAULT_USER,), ("alice", "")),
    ((APP,), ("", "app")),
    ((DEFAULT_CLIENT,), ("", "app")),
]
"""Entities in the order in which they are looked for, and who shares the quota then."""


@given(st.sets(st.integers(0, len(PRECEDENCE) - 1)))
def test_the_most_specific_entity_applies(present: set[int]) -> None:
    quotas = {PRECEDENCE[number][0]: {KEY: float(number + 1)} for number in present}
    others: dict[QuotaEntity, dict[str, float]] = {
        (("user", "bob"),): {KEY: 99.0},
        (("client-id", "other"),): {KEY: 99.0},
        (("ip", "10.0.0.1"),): {"connection_creation_rate": 99.0},
    }
    found = QuotaTable(others | quotas, KEY).find("alice", "app")
    if not present:
        assert found is None
        return
    first = min(present)
    assert found == (first + 1, PRECEDENCE[first][1])


def test_a_quota_of_another_key_does_not_apply() -> None:
    table = QuotaTable({(ALICE,): {"consumer_byte_rate": 1.0}}, KEY)
    assert not table
    assert table.find("alice", "app") is None


def test_all_clients_of_a_user_share_its_quota() -> None:
    quota = RateQuota(KEY)
    quota.update({(ALICE,): {KEY: 100.0}})
    assert quota.record("alice", "a", 1000, NOW_MS) == 0
    assert quota.record("alice", "b", 1000, NOW_MS) == 10_000
    assert quota.record("bob", "a", 10**9, NOW_MS) == 0
    assert len(quota.sensors) == 1


def test_with_a_default_each_user_has_its_own_rate() -> None:
    quota = RateQuota(KEY)
    quota.update({(DEFAULT_USER,): {KEY: 100.0}})
    for user, client_id in product(("alice", "bob"), ("a", "b")):
        expected = 0 if client_id == "a" else 10_000
        assert quota.record(user, client_id, 1000, NOW_MS) == expected
    assert len(quota.sensors) == 2


def test_a_delay_can_be_limited() -> None:
    quota = RateQuota(KEY, max_delay_ms=1000)
    quota.update({(ALICE,): {KEY: 1.0}})
    assert quota.record("alice", "a", 10**6, NOW_MS) == 1000


def test_the_burst_is_what_the_full_samples_allow() -> None:
    quota = RateQuota(KEY)
    quota.update({(ALICE,): {KEY: 100.0}})
    assert quota.burst_limit("alice", "a") == 1000
    assert quota.burst_limit("bob", "a") is None
    assert quota.record("alice", "a", 1000, NOW_MS) == 0
    quota.take_back("alice", "a", 1000, NOW_MS)
    assert quota.record("alice", "a", 1000, NOW_MS) == 0


def test_without_quotas_nothing_is_measured() -> None:
    quota = RateQuota(KEY)
    assert not quota.is_enabled
    quota.update({(ALICE,): {KEY: 1.0}})
    quota.record("alice", "a", 1, NOW_MS)
    assert (quota.is_enabled, len(quota.sensors)) == (True, 1)
    quota.update({})
    assert (quota.is_enabled, len(quota.sensors)) == (False, 0)


def test_sensors_are_bounded_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quotas, "MAX_SENSORS", 3)
    quota = RateQuota(KEY)
    quota.update({(DEFAULT_CLIENT,): {KEY: 100.0}})
    for number in range(10):
        quota.record("alice", str(number), 1, NOW_MS + number)
    assert [tags.client_id for tags, _ in quota.sensors] == ["7", "8", "9"]
    quota.record("alice", "7", 1, NOW_MS + 10)
    quota.sensors.remove_expired(NOW_MS + 10 + client_quotas.SENSOR_EXPIRY_MS - 1)
    assert [tags.client_id for tags, _ in quota.sensors] == ["7"]
    quota.sensors.remove_expired(NOW_MS + 10 + client_quotas.SENSOR_EXPIRY_MS)
    assert len(quota.sensors) == 0
