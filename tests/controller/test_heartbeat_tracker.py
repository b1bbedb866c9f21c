"""Sessions of brokers: when they end."""

from barnabas.controller.heartbeat_tracker import BrokerContact, BrokerHeartbeatTracker

SESSION_MS = 9_000


def new_tracker() -> BrokerHeartbeatTracker:
    tracker = BrokerHeartbeatTracker(SESSION_MS)
    tracker.touch(BrokerContact(1, 5, 0, metadata_offset=7))
    tracker.touch(BrokerContact(2, 6, 1_000, metadata_offset=7))
    return tracker


def test_the_session_of_a_broker_without_heartbeats_ends_once() -> None:
    tracker = new_tracker()
    ended = {now_ms: list(tracker.expire_sessions(now_ms)) for now_ms in range(0, 12_000, 500)}
    assert {now_ms: ids for now_ms, ids in ended.items() if ids} == {9_000: [1], 10_000: [2]}


def test_a_controller_that_stood_still_does_not_end_sessions() -> None:
    tracker = new_tracker()
    assert not list(tracker.expire_sessions(2_000))
    assert not list(tracker.expire_sessions(30_000))
    assert not list(tracker.expire_sessions(34_000))
    assert not list(tracker.expire_sessions(38_000))
    assert list(tracker.expire_sessions(39_000)) == [1, 2]
