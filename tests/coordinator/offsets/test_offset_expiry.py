"""What time and the deletion of topics do to offsets and groups."""

import pytest
from tests.coordinator.offsets.scene import DAY_MS, HOUR_MS, Scene, StubGroup

from barnabas.coordinator.groups.offsets import expiration
from barnabas.wire.errors import ErrorCode, KafkaError

CHECK_MS = 600_000
RETENTION_MS = 7 * DAY_MS


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_offsets_expire_after_the_retention_and_the_group_with_the_last(scene: Scene) -> None:
    scene.commit({"t": {0: 1}})
    scene.world.advance(HOUR_MS)
    scene.commit({"t": {1: 1}})
    scene.world.advance(RETENTION_MS - HOUR_MS - CHECK_MS)
    assert scene.fetch(None) == {"t": {0: 1, 1: 1}}
    scene.world.advance(CHECK_MS)
    assert scene.fetch(None) == {"t": {1: 1}}
    assert scene.list() == ["g"]
    scene.world.advance(HOUR_MS)
    assert scene.list() == []
    assert scene.groups.offsets.count == 0
    scene.reload()
    assert scene.list() == []
    assert not scene.held()


def test_an_expiry_of_its_own_comes_before_the_retention(scene: Scene) -> None:
    scene.commit({"t": {0: 1}}, retention_ms=HOUR_MS, version=4)
    scene.commit({"t": {1: 1}})
    scene.world.advance(HOUR_MS - 1)
    assert scene.fetch(None) == {"t": {0: 1, 1: 1}}
    scene.world.advance(CHECK_MS)
    assert scene.fetch(None) == {"t": {1: 1}}


def test_the_group_says_from_when_on_its_offsets_count(scene: Scene) -> None:
    group = scene.groups.by_id["g"] = StubGroup()
    scene.commit({"t": {0: 1}, "u": {0: 1}})
    scene.commit({"t": {1: 1}}, retention_ms=1, version=4)
    scene.world.advance(2 * RETENTION_MS)
    assert scene.fetch(None) == {"t": {0: 1, 1: 1}, "u": {0: 1}}
    group.expires_after_ms = scene.world.clock.now_ms
    group.subscribed = {"t"}
    scene.world.advance(RETENTION_MS - CHECK_MS)
    assert scene.fetch(None) == {"t": {0: 1, 1: 1}, "u": {0: 1}}
    scene.world.advance(CHECK_MS)
    assert scene.fetch(None) == {"t": {0: 1, 1: 1}}
    group.subscribed = set()
    scene.world.advance(CHECK_MS)
    assert scene.fetch(None) == {}
    assert scene.list() == ["g"]  # somebody is in it


def test_an_empty_group_without_offsets_goes_at_the_next_look(scene: Scene) -> None:
    scene.commit({"t": {0: 1}})
    scene.delete_offsets({"t": [0]})
    assert scene.list() == ["g"]
    scene.world.advance(CHECK_MS)
    assert scene.list() == []


def test_a_new_coordinator_goes_on_looking(scene: Scene) -> None:
    scene.commit({"t": {0: 1}})
    scene.reload()
    scene.world.advance(RETENTION_MS + CHECK_MS)
    assert scene.list() == []


def test_many_offsets_are_gone_through_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration, "PAGES_PER_SLICE", 2)
    scene = Scene(offsets_retention_minutes=60)
    scene.world.create_topic("wide", 1000)
    scene.commit({"wide": dict.fromkeys(range(1000), 1), "t": {0: 1}})
    scene.commit({"t": {0: 1}}, group="other")
    before = len(scene.world.log.batches)
    scene.world.advance(HOUR_MS + CHECK_MS)
    assert not scene.held()
    assert scene.list() == []
    assert len(scene.world.log.batches) - before > 8


def test_what_cannot_be_written_expires_at_a_later_look(scene: Scene) -> None:
    scene.commit({"t": {0: 1}})
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    scene.world.advance(RETENTION_MS + CHECK_MS)
    assert scene.fetch(None) == {"t": {0: 1}}
    scene.world.log.refusal = None
    scene.world.advance(2 * CHECK_MS)
    assert scene.list() == []


def test_offsets_of_a_deleted_topic_are_deleted_committed_or_pending(scene: Scene) -> None:
    scene.commit({"t": {0: 1, 1: 1}, "u": {0: 1}})
    scene.commit({"t": {0: 1}}, group="other")
    scene.commit({"t": {2: 1}}, retention_ms=HOUR_MS, version=4)  # tells no topic id
    scene.txn_commit({"t": {1: 5, 3: 5}, "u": {1: 5}})
    scene.world.advance(1)
    scene.world.delete_topic("t")
    scene.world.advance(0)
    assert list(scene.held()) == [("g", "u", 0)]
    scene.end(committed=True)
    assert list(scene.held()) == [("g", "u", 0), ("g", "u", 1)]
    assert scene.list() == ["g", "other"]
    assert scene.groups.offsets.groups_of("t") == frozenset()
    scene.reload()
    assert list(scene.held()) == [("g", "u", 0), ("g", "u", 1)]


def test_offsets_of_a_new_topic_of_the_same_name_are_kept(scene: Scene) -> None:
    scene.commit({"t": {0: 1, 1: 1}})
    scene.world.delete_topic("t")
    scene.world.create_topic("t", 4, topic_id=b"the t that is new"[:16])
    scene.commit({"t": {1: 2}})
    scene.txn_commit({"t": {1: 3}})
    scene.world.advance(0)
    assert scene.fetch(None) == {"t": {1: 2}}
    scene.end(committed=True)
    assert scene.fetch(None) == {"t": {1: 3}}


def test_transactional_offsets_of_a_new_topic_are_told_by_their_time(scene: Scene) -> None:
    scene.txn_commit({"t": {0: 1, 1: 1}})
    scene.end(committed=True)
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    scene.world.advance(1)
    scene.world.delete_topic("t")
    scene.world.create_topic("t", 4, topic_id=b"the t that is new"[:16])
    scene.world.advance(1)
    scene.world.log.refusal = None
    scene.txn_commit({"t": {1: 2}})
    scene.end(committed=True)
    scene.world.advance(1_000)
    assert scene.fetch(None) == {"t": {1: 2}}


def test_the_deletion_of_a_topic_is_tried_until_it_is_written(scene: Scene) -> None:
    scene.commit({"t": {0: 1}})
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    scene.world.delete_topic("t")
    scene.world.advance(0)
    assert scene.fetch(None) == {"t": {0: 1}}
    scene.world.log.refusal = None
    scene.world.advance(1_000)
    assert scene.fetch(None) == {}
