"""OffsetFetch of one group."""

import pytest
from tests.coordinator.offsets.harness import OffsetHarness, StubGroup

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import OffsetFetchResponsePartitions
from barnabas.wire.uuid import ZERO


@pytest.fixture
def harness() -> OffsetHarness:
    harness = OffsetHarness()
    harness.commit({"t": {0: (7, "m"), 2: 8}, "u": {1: 9}}, leader_epoch=3)
    return harness


def test_a_fetched_offset_has_its_metadata_and_epoch(harness: OffsetHarness) -> None:
    (topic,) = harness.fetch_whole({"t": [0]}).topics
    assert topic.partitions == [
        OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=7, committed_leader_epoch=3, metadata="m"
        )
    ]


def test_a_missing_offset_is_returned_as_none(harness: OffsetHarness) -> None:
    (topic,) = harness.fetch_whole({"t": [1]}).topics
    assert topic.partitions == [
        OffsetFetchResponsePartitions(
            partition_index=1, committed_offset=-1, committed_leader_epoch=-1, metadata=""
        )
    ]
    assert harness.fetch({"t": [99, -1, 2**31 - 1], "nope": [0]}) == {
        "t": {99: -1, -1: -1, 2**31 - 1: -1},
        "nope": {0: -1},
    }
    assert harness.fetch({"t": [0]}, group="absent") == {"t": {0: -1}}


def test_no_topics_named_is_all_that_was_committed(harness: OffsetHarness) -> None:
    assert harness.fetch(None) == {"t": {0: 7, 2: 8}, "u": {1: 9}}
    assert harness.fetch({}) == {}
    assert harness.fetch(None, group="absent") == {}


def test_from_version_10_on_topics_are_named_by_id(harness: OffsetHarness) -> None:
    t, stranger = harness.ids["t"], b"s" * 16
    assert harness.fetch({t: [0, 1], stranger: [0], ZERO: [0]}, version=10) == {
        t: {0: 7, 1: -1},
        stranger: {0: ErrorCode.UNKNOWN_TOPIC_ID},
        ZERO: {0: ErrorCode.UNKNOWN_TOPIC_ID},
    }
    assert harness.fetch(None, version=10) == {t: {0: 7, 2: 8}, harness.ids["u"]: {1: 9}}


def test_offsets_of_a_deleted_topic_are_not_returned_by_topic_id(harness: OffsetHarness) -> None:
    # As after a failover: the coordinator was not there when the topic was deleted.
    harness.environment.image.topics.remove(harness.ids["u"])
    assert harness.fetch({"u": [1]}) == {"u": {1: 9}}
    assert harness.fetch(None)["u"] == {1: 9}
    assert list(harness.fetch(None, version=10)) == [harness.ids["t"]]
    other_id = harness.environment.create_topic("u", 2, topic_id=b"another u with id")
    assert harness.fetch({other_id: [1]}, version=10) == {other_id: {1: -1}}
    assert harness.fetch({"u": [1]}) == {"u": {1: 9}}


def test_offsets_without_a_topic_id_are_returned_for_any(harness: OffsetHarness) -> None:
    harness.commit({"t": {1: 5}}, retention_ms=1000, version=4)
    assert harness.fetch({harness.ids["t"]: [1]}, version=10) == {harness.ids["t"]: {1: 5}}


def test_the_group_checks_the_fetching_member(harness: OffsetHarness) -> None:
    group = harness.groups.by_id["g"] = StubGroup()
    assert harness.fetch({"t": [0]}, member="m", epoch=4) == {"t": {0: 7}}
    assert group.checked == [("m", 4)]
    group.append_error = KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "")
    with pytest.raises(KafkaError, match="STALE_MEMBER_EPOCH"):
        harness.fetch(None)
