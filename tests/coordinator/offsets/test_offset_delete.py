"""OffsetDelete, and the deletion and listing of groups."""

import pytest
from tests.coordinator.offsets.harness import OffsetHarness, StubGroup

from barnabas.coordinator.groups.group import GroupType
from barnabas.coordinator.groups.offsets.record import OffsetKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import GroupMetadataKey

OK = ErrorCode.NONE


@pytest.fixture
def harness() -> OffsetHarness:
    harness = OffsetHarness()
    harness.commit({"t": {0: 7, 1: 8}, "u": {1: 9}})
    return harness


def test_deleted_offsets_are_removed(harness: OffsetHarness) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.delete_offsets({"t": [0, 3, 9], "nope": [0]}) == {
        "t": {0: OK, 3: OK, 9: unknown},
        "nope": {0: unknown},
    }
    assert harness.written[3:] == [(OffsetKey("g", "t", 0), None, 0)]
    assert harness.fetch(None) == {"t": {1: 8}, "u": {1: 9}}
    harness.reload()
    assert harness.fetch(None) == {"t": {1: 8}, "u": {1: 9}}


def test_offsets_of_subscribed_topics_do_not_expire(harness: OffsetHarness) -> None:
    group = harness.groups.by_id["g"] = StubGroup()
    group.subscribed = {"t"}
    subscribed = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert harness.delete_offsets({"t": [0, 1], "u": [1]}) == {
        "t": {0: subscribed, 1: subscribed},
        "u": {1: OK},
    }
    assert harness.fetch(None) == {"t": {0: 7, 1: 8}}


def test_offsets_are_deleted_from_an_existing_group_that_allows_it(harness: OffsetHarness) -> None:
    assert harness.delete_offsets({"t": [0]}, group="") is ErrorCode.INVALID_GROUP_ID
    assert harness.delete_offsets({"nope": [0]}, group="absent") is ErrorCode.GROUP_ID_NOT_FOUND
    group = harness.groups.by_id["g"] = StubGroup()
    group.append_error = KafkaError(ErrorCode.NON_EMPTY_GROUP, "")
    assert harness.delete_offsets({"t": [0]}) is ErrorCode.NON_EMPTY_GROUP


def test_a_deleted_group_leaves_nothing_behind(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}}, group="other")
    assert harness.delete_group() is OK
    assert [record.value for record in harness.written[4:]] == [None] * 4
    assert isinstance(harness.written[-1].key, GroupMetadataKey)
    for _ in range(2):
        assert harness.list() == ["other"]
        assert list(harness.held()) == [("other", "t", 0)]
        assert harness.groups.offsets.groups_of("t") == {"other"}
        assert harness.groups.offsets.count == 1
        harness.reload()
    assert harness.delete_group() is ErrorCode.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_not_deleted(harness: OffsetHarness) -> None:
    group = harness.groups.by_id["g"] = StubGroup()
    group.append_error = KafkaError(ErrorCode.NON_EMPTY_GROUP, "")
    assert harness.delete_group() is ErrorCode.NON_EMPTY_GROUP
    assert harness.fetch(None, group="g2") == {}
    assert len(harness.held()) == 3


def test_groups_are_listed_by_state_and_type_in_any_case(harness: OffsetHarness) -> None:
    harness.groups.by_id["c"] = StubGroup("c")
    assert harness.list() == ["c", "g"]
    assert harness.list(states=["EMPTY "]) == ["g"]
    assert harness.list(states=["stable", "bogus"]) == ["c"]
    assert harness.list(states=["bogus"]) == []
    assert harness.list(types=["Classic"]) == ["g"]
    assert harness.list(types=["consumer", "bogus"]) == ["c"]
    assert harness.list(types=["classic "]) == harness.list(types=["share"]) == []
    assert harness.list(states=["empty"], types=["consumer"]) == []
    assert GroupType("classic") is harness.groups.by_id["g"].group_type
