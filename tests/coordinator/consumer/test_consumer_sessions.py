"""Time limits: of heartbeats and of revocations, with the settings in force at the moment."""

import pytest
from tests.coordinator.consumer.harness import (
    INTERVAL_MS,
    REBALANCE_MS,
    SESSION_MS,
    ConsumerHarness,
    Member,
)

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.coordinator.timers import RETRY_MS
from barnabas.wire.errors import ErrorCode, KafkaError


@pytest.fixture
def harness() -> ConsumerHarness:
    return ConsumerHarness()


def revoking(harness: ConsumerHarness) -> Member:
    """A member that has to give something back."""
    harness.topic("t", 4)
    member = Member(harness, "a")
    member.join("t")
    harness.join("b", "t")
    harness.advance(INTERVAL_MS)
    harness.heartbeat("a", member.epoch)
    assert harness.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    return member


def test_a_member_without_heartbeats_is_fenced(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    harness.advance(SESSION_MS - 1)
    assert "m" in harness.group.members
    harness.advance(1)
    assert harness.group.is_empty
    assert harness.group.epoch == epoch + 1
    assert harness.code("m", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert ("session", "g", "m") not in harness.groups.timers


def test_each_heartbeat_restarts_the_session(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    for _ in range(3):
        harness.advance(SESSION_MS - 1)
        harness.heartbeat("m", epoch)
    assert "m" in harness.group.members


def test_changed_settings_of_the_group_are_used_at_once(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    harness.environment.settings.groups["g"] = {
        "consumer.session.timeout.ms": 50_000,
        "consumer.heartbeat.interval.ms": 7_000,
    }
    assert harness.heartbeat("m", epoch).heartbeat_interval_ms == 7_000
    harness.advance(49_999)
    assert "m" in harness.group.members
    harness.advance(1)
    assert harness.group.is_empty


def test_a_member_that_does_not_revoke_in_time_is_fenced(harness: ConsumerHarness) -> None:
    member = revoking(harness)
    for _ in range(2):
        harness.advance(REBALANCE_MS // 2 - 1)
        member.owned = {(topic, p) for topic in harness.group.owners for p in range(4)}
        member.heartbeat()
    harness.advance(2)
    assert harness.group.members.keys() == {"b"}


def test_a_member_that_revoked_has_no_revocation_timer(harness: ConsumerHarness) -> None:
    member = revoking(harness)
    member.owned = {(topic, p) for topic in harness.group.owners for p in range(2)}
    member.heartbeat()
    assert ("rebalance", "g", "a") not in harness.groups.timers


def test_a_fencing_that_cannot_be_written_is_retried(harness: ConsumerHarness) -> None:
    harness.stable("m")
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    harness.advance(SESSION_MS)
    assert "m" in harness.group.members
    harness.environment.log.append_error = None
    harness.advance(RETRY_MS)
    assert harness.group.is_empty


def test_a_leave_that_cannot_be_written_leaves_the_session_running(
    harness: ConsumerHarness,
) -> None:
    harness.stable("m")
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert harness.code("m", -1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.environment.log.append_error = None
    harness.advance(SESSION_MS)
    assert harness.group.is_empty


def test_a_step_that_cannot_be_written_leaves_the_revocation_timer_running(
    harness: ConsumerHarness,
) -> None:
    member = revoking(harness)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert harness.code("a", member.epoch, topic_partitions=[]) != ErrorCode.NONE
    assert ("rebalance", "g", "a") in harness.groups.timers


def test_after_a_failover_members_have_a_full_session(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m", "n")
    harness.advance(SESSION_MS - 1)
    harness.lead()
    harness.advance(SESSION_MS - 1)
    harness.heartbeat("m", epoch)
    harness.advance(1)
    assert harness.group.members.keys() == {"m"}


def test_after_a_failover_a_revocation_still_has_its_timer(harness: ConsumerHarness) -> None:
    revoking(harness)
    harness.lead()
    assert ("rebalance", "g", "a") in harness.groups.timers
    assert ("rebalance", "g", "b") not in harness.groups.timers


def test_no_timer_expires_after_the_resignation(harness: ConsumerHarness) -> None:
    harness.stable("m")
    group = harness.group
    harness.environment.runtime.close()
    harness.advance(10 * SESSION_MS)
    assert "m" in group.members
