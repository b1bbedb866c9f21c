"""What time and the deletion of topics do to offsets and groups."""

import logging

import pytest
from tests.coordinator.offsets.harness import DAY_MS, HOUR_MS, OffsetHarness, StubGroup
from tests.log_records import barnabas_log_lines

from barnabas.coordinator.groups.offsets import expiration
from barnabas.wire.errors import ErrorCode, KafkaError

CHECK_MS = 600_000
RETENTION_MS = 7 * DAY_MS


@pytest.fixture
def harness() -> OffsetHarness:
    return OffsetHarness()


def test_offsets_expire_after_the_retention_and_the_group_with_the_last(
    harness: OffsetHarness,
) -> None:
    harness.commit({"t": {0: 1}})
    harness.environment.advance(HOUR_MS)
    harness.commit({"t": {1: 1}})
    harness.environment.advance(RETENTION_MS - HOUR_MS - CHECK_MS)
    assert harness.fetch(None) == {"t": {0: 1, 1: 1}}
    harness.environment.advance(CHECK_MS)
    assert harness.fetch(None) == {"t": {1: 1}}
    assert harness.list() == ["g"]
    harness.environment.advance(HOUR_MS)
    assert harness.list() == []
    assert harness.groups.offsets.count == 0
    harness.reload()
    assert harness.list() == []
    assert not harness.held()


def test_expired_offsets_and_groups_are_logged_once_they_are_deleted(
    harness: OffsetHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.commit({"t": {0: 1, 1: 1}})
    unavailable = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "One is left.")
    with caplog.at_level(logging.INFO, "barnabas.coordinator"):
        harness.environment.log.append_error = unavailable
        harness.environment.advance(RETENTION_MS + CHECK_MS)
        assert barnabas_log_lines(caplog) == []
        harness.environment.log.append_error = None
        harness.environment.advance(CHECK_MS)
    assert barnabas_log_lines(caplog) == [
        "[GroupId g] The offsets of 2 partitions have expired (offsets.retention.minutes=10080)",
        "The group g is deleted: it has no members and no offsets",
    ]


def test_an_expiry_of_its_own_comes_before_the_retention(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}}, retention_ms=HOUR_MS, version=4)
    harness.commit({"t": {1: 1}})
    harness.environment.advance(HOUR_MS - 1)
    assert harness.fetch(None) == {"t": {0: 1, 1: 1}}
    harness.environment.advance(CHECK_MS)
    assert harness.fetch(None) == {"t": {1: 1}}


def test_the_group_decides_when_retention_begins(harness: OffsetHarness) -> None:
    group = harness.groups.by_id["g"] = StubGroup()
    harness.commit({"t": {0: 1}, "u": {0: 1}})
    harness.commit({"t": {1: 1}}, retention_ms=1, version=4)
    harness.environment.advance(2 * RETENTION_MS)
    assert harness.fetch(None) == {"t": {0: 1, 1: 1}, "u": {0: 1}}
    group.expires_after_ms = harness.environment.clock.now_ms
    group.subscribed = {"t"}
    harness.environment.advance(RETENTION_MS - CHECK_MS)
    assert harness.fetch(None) == {"t": {0: 1, 1: 1}, "u": {0: 1}}
    harness.environment.advance(CHECK_MS)
    assert harness.fetch(None) == {"t": {0: 1, 1: 1}}
    group.subscribed = set()
    harness.environment.advance(CHECK_MS)
    assert harness.fetch(None) == {}
    assert harness.list() == ["g"]  # it has members


def test_an_empty_group_without_offsets_is_deleted_by_the_next_check(
    harness: OffsetHarness,
) -> None:
    harness.commit({"t": {0: 1}})
    harness.delete_offsets({"t": [0]})
    assert harness.list() == ["g"]
    harness.environment.advance(CHECK_MS)
    assert harness.list() == []


def test_a_new_coordinator_continues_the_expiration(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}})
    harness.reload()
    harness.environment.advance(RETENTION_MS + CHECK_MS)
    assert harness.list() == []


def test_many_offsets_are_checked_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration, "PAGES_PER_SLICE", 2)
    harness = OffsetHarness(offsets_retention_minutes=60)
    harness.environment.create_topic("wide", 1000)
    harness.commit({"wide": dict.fromkeys(range(1000), 1), "t": {0: 1}})
    harness.commit({"t": {0: 1}}, group="other")
    before = len(harness.environment.log.batches)
    harness.environment.advance(HOUR_MS + CHECK_MS)
    assert not harness.held()
    assert harness.list() == []
    assert len(harness.environment.log.batches) - before > 8


def test_an_expiration_that_cannot_be_written_is_retried_by_a_later_check(
    harness: OffsetHarness,
) -> None:
    harness.commit({"t": {0: 1}})
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    harness.environment.advance(RETENTION_MS + CHECK_MS)
    assert harness.fetch(None) == {"t": {0: 1}}
    harness.environment.log.append_error = None
    harness.environment.advance(2 * CHECK_MS)
    assert harness.list() == []


def test_offsets_of_a_deleted_topic_are_deleted_committed_or_pending(
    harness: OffsetHarness,
) -> None:
    harness.commit({"t": {0: 1, 1: 1}, "u": {0: 1}})
    harness.commit({"t": {0: 1}}, group="other")
    harness.commit({"t": {2: 1}}, retention_ms=HOUR_MS, version=4)  # has no topic id
    harness.txn_commit({"t": {1: 5, 3: 5}, "u": {1: 5}})
    harness.environment.advance(1)
    harness.environment.delete_topic("t")
    harness.environment.advance(0)
    assert list(harness.held()) == [("g", "u", 0)]
    harness.end(committed=True)
    assert list(harness.held()) == [("g", "u", 0), ("g", "u", 1)]
    assert harness.list() == ["g", "other"]
    assert harness.groups.offsets.groups_of("t") == frozenset()
    harness.reload()
    assert list(harness.held()) == [("g", "u", 0), ("g", "u", 1)]


def test_offsets_of_a_new_topic_of_the_same_name_are_kept(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1, 1: 1}})
    harness.environment.delete_topic("t")
    harness.environment.create_topic("t", 4, topic_id=b"the t that is new"[:16])
    harness.commit({"t": {1: 2}})
    harness.txn_commit({"t": {1: 3}})
    harness.environment.advance(0)
    assert harness.fetch(None) == {"t": {1: 2}}
    harness.end(committed=True)
    assert harness.fetch(None) == {"t": {1: 3}}


def test_transactional_offsets_of_a_recreated_topic_are_recognized_by_time(
    harness: OffsetHarness,
) -> None:
    harness.txn_commit({"t": {0: 1, 1: 1}})
    harness.end(committed=True)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    harness.environment.advance(1)
    harness.environment.delete_topic("t")
    harness.environment.create_topic("t", 4, topic_id=b"the t that is new"[:16])
    harness.environment.advance(1)
    harness.environment.log.append_error = None
    harness.txn_commit({"t": {1: 2}})
    harness.end(committed=True)
    harness.environment.advance(1_000)
    assert harness.fetch(None) == {"t": {1: 2}}


def test_the_deletion_of_a_topics_offsets_is_retried_until_it_is_written(
    harness: OffsetHarness,
) -> None:
    harness.commit({"t": {0: 1}})
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    harness.environment.delete_topic("t")
    harness.environment.advance(0)
    assert harness.fetch(None) == {"t": {0: 1}}
    harness.environment.log.append_error = None
    harness.environment.advance(1_000)
    assert harness.fetch(None) == {}
