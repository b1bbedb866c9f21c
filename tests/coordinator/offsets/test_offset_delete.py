"""OffsetDelete, and the deletion and listing of groups."""

import pytest
from tests.coordinator.offsets.scene import Scene, StubGroup

from barnabas.coordinator.groups.group import GroupType
from barnabas.coordinator.groups.offsets.record import OffsetKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import GroupMetadataKey

OK = ErrorCode.NONE


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.commit({"t": {0: 7, 1: 8}, "u": {1: 9}})
    return scene


def test_deleted_offsets_are_gone(scene: Scene) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert scene.delete_offsets({"t": [0, 3, 9], "nope": [0]}) == {
        "t": {0: OK, 3: OK, 9: unknown},
        "nope": {0: unknown},
    }
    assert scene.written[3:] == [(OffsetKey("g", "t", 0), None, 0)]
    assert scene.fetch(None) == {"t": {1: 8}, "u": {1: 9}}
    scene.reload()
    assert scene.fetch(None) == {"t": {1: 8}, "u": {1: 9}}


def test_offsets_that_members_read_on_from_are_kept(scene: Scene) -> None:
    group = scene.groups.by_id["g"] = StubGroup()
    group.subscribed = {"t"}
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert scene.delete_offsets({"t": [0, 1], "u": [1]}) == {
        "t": {0: subscribed, 1: subscribed},
        "u": {1: OK},
    }
    assert scene.fetch(None) == {"t": {0: 7, 1: 8}}


def test_offsets_are_deleted_from_a_group_that_is_there_and_lets_them(scene: Scene) -> None:
    assert scene.delete_offsets({"t": [0]}, group="") is ErrorCode.INVALID_GROUP_ID
    assert scene.delete_offsets({"nope": [0]}, group="absent") is ErrorCode.GROUP_ID_NOT_FOUND
    group = scene.groups.by_id["g"] = StubGroup()
    group.refusal = KafkaError(ErrorCode.NON_EMPTY_GROUP, "")
    assert scene.delete_offsets({"t": [0]}) is ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_group_leaves_nothing_behind(scene: Scene) -> None:
    scene.commit({"t": {0: 1}}, group="other")
    assert scene.delete_group() is OK
    assert [record.value for record in scene.written[4:]] == [None] * 4
    assert isinstance(scene.written[-1].key, GroupMetadataKey)
    for _ in range(2):
        assert scene.list() == ["other"]
        assert list(scene.held()) == [("other", "t", 0)]
        assert scene.groups.offsets.groups_of("t") == {"other"}
        assert scene.groups.offsets.count == 1
        scene.reload()
    assert scene.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_that_somebody_is_in_stays(scene: Scene) -> None:
    group = scene.groups.by_id["g"] = StubGroup()
    group.refusal = KafkaError(ErrorCode.NON_EMPTY_GROUP, "")
    assert scene.delete_group() is ErrorCode.NON_EMPTY_GROUP
    assert scene.fetch(None, group="g2") == {}
    assert len(scene.held()) == 3


def test_groups_are_listed_by_state_and_type_whatever_the_case(scene: Scene) -> None:
    scene.groups.by_id["c"] = StubGroup("c")
    assert scene.list() == ["c", "g"]
    assert scene.list(states=["EMPTY "]) == ["g"]
    assert scene.list(states=["stable", "bogus"]) == ["c"]
    assert scene.list(states=["bogus"]) == []
    assert scene.list(types=["Classic"]) == ["g"]
    assert scene.list(types=["consumer", "bogus"]) == ["c"]
    assert scene.list(types=["classic "]) == scene.list(types=["share"]) == []
    assert scene.list(states=["empty"], types=["consumer"]) == []
    assert GroupType("classic") is scene.groups.by_id["g"].group_type
