"""Which replicas a throttle covers, and when they are over their rate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.replication.world import World

from barnabas.replication.throttle import ReplicationQuota, ReplicationThrottle, ThrottleSide

UNLIMITED = 2**63 - 1


@pytest.fixture
def throttle(world: World) -> ReplicationThrottle:
    return ReplicationThrottle(ThrottleSide.LEADER, world.node_id, world.resolver)


def quota(bytes_per_second: int = 100) -> ReplicationQuota:
    return ReplicationQuota(bytes_per_second, windows=11, window_ms=1_000)


def test_nothing_is_throttled_by_default(throttle: ReplicationThrottle) -> None:
    assert not throttle
    assert not throttle.is_throttled("orders", 0)
    assert throttle.quota.bytes_per_second == UNLIMITED


def test_a_topic_names_its_throttled_replicas(world: World, throttle: ReplicationThrottle) -> None:
    world.create_topic("orders", **{"leader.replication.throttled.replicas": "0:1,1:2,2:1"})
    world.create_topic("payments", **{"leader.replication.throttled.replicas": "*"})
    world.create_topic("others", **{"follower.replication.throttled.replicas": "*"})
    throttle.apply_configs([(2, "orders"), (2, "payments"), (2, "others")])
    assert throttle
    assert [throttle.is_throttled("orders", index) for index in range(3)] == [True, False, True]
    assert throttle.is_throttled("payments", 99)
    assert not throttle.is_throttled("others", 0)


def test_a_removed_throttle_covers_nothing(world: World, throttle: ReplicationThrottle) -> None:
    world.create_topic("orders", **{"leader.replication.throttled.replicas": "*"})
    throttle.apply_configs([(2, "orders")])
    world.configure("orders", **{"leader.replication.throttled.replicas": None})
    throttle.apply_configs([(2, "orders")])
    assert not throttle


def test_only_throttled_replicas_count_and_wait(
    world: World, throttle: ReplicationThrottle
) -> None:
    world.create_topic("orders", 2, **{"leader.replication.throttled.replicas": "0:1"})
    world.configure_broker(**{"leader.replication.throttled.rate": "100"})
    throttle.apply_configs([(2, "orders"), (4, "")])
    throttle.record("orders", 1, 10_000, 0)
    assert not throttle.is_over_quota("orders", 0, 0)
    throttle.record("orders", 0, 10_000, 0)
    assert throttle.is_over_quota("orders", 0, 0)
    assert not throttle.is_over_quota("orders", 1, 0)


def test_the_rate_is_measured_over_one_window_at_least() -> None:
    measured = quota()
    measured.record(100, 0)
    assert measured.rate(0) == 100
    assert not measured.is_exceeded(0)
    measured.record(1, 10)
    assert measured.is_exceeded(10)
    assert not measured.is_exceeded(1_011)


def test_old_windows_are_forgotten() -> None:
    measured = quota()
    measured.record(10_000, 0)
    assert measured.is_exceeded(10_999)
    assert measured.rate(11_000) == 0


@given(
    st.lists(st.tuples(st.integers(0, 3_000), st.integers(0, 5_000)), min_size=1, max_size=30),
    st.integers(1, 2_000),
)
def test_the_next_check_is_when_the_rate_has_fallen(
    records: list[tuple[int, int]], bytes_per_second: int
) -> None:
    measured = quota(bytes_per_second)
    now_ms = 0
    for pause_ms, size_bytes in records:
        now_ms += pause_ms
        measured.record(size_bytes, now_ms)
    looks = 0
    while (wait_ms := measured.ms_until_within_quota(now_ms)) > 0:
        assert measured.is_exceeded(now_ms)
        now_ms += wait_ms
        looks += 1
    assert not measured.is_exceeded(now_ms)
    assert looks <= 12  # a look for each window that falls away, at most
