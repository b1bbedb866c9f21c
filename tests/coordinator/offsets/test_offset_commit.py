"""OffsetCommit: what is stored, which errors there are, and which members may commit."""

import pytest
from tests.coordinator.environment import START_MS
from tests.coordinator.offsets.harness import OffsetHarness, StubGroup

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.uuid import ZERO

OK = ErrorCode.NONE


@pytest.fixture
def harness() -> OffsetHarness:
    return OffsetHarness()


def test_a_commit_is_stored_and_written_as_kafka_writes_it(harness: OffsetHarness) -> None:
    assert harness.commit({"t": {0: (7, "m"), 3: 8}, "u": {1: 9}}, leader_epoch=2) == {
        "t": {0: OK, 3: OK},
        "u": {1: OK},
    }
    records = harness.written
    assert [record.version for record in records] == [4, 4, 4]
    assert len(harness.environment.log.batches) == 1
    assert records[0].key == OffsetKey("g", "t", 0)
    assert records[0].value == CommittedOffset(7, 2, "m", START_MS, -1, harness.ids["t"])
    assert harness.held() == {record.key: record.value for record in records}
    assert harness.groups.offsets.count == 3


def test_a_later_commit_replaces_an_earlier_one(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: (7, "m")}})
    harness.commit({"t": {0: 5}})
    assert harness.held()["g", "t", 0][:3] == (5, -1, "")
    assert harness.groups.offsets.count == 1


def test_topics_are_named_by_id_from_version_10_on(harness: OffsetHarness) -> None:
    stranger = b"s" * 16
    offered = {harness.ids["t"]: {0: 7, 9: 7}, stranger: {0: 7}, ZERO: {0: 1}}
    assert harness.commit(offered, version=10) == {
        harness.ids["t"]: {0: OK, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION},
        stranger: {0: ErrorCode.UNKNOWN_TOPIC_ID},
        ZERO: {0: ErrorCode.UNKNOWN_TOPIC_ID},
    }
    assert list(harness.held()) == [("g", "t", 0)]


def test_an_unknown_partition_is_a_partition_error(harness: OffsetHarness) -> None:
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.commit({"t": {0: 1, 4: 1, -1: 1}, "nope": {0: 1}}) == {
        "t": {0: OK, 4: unknown, -1: unknown},
        "nope": {0: unknown},
    }
    assert list(harness.held()) == [("g", "t", 0)]


def test_metadata_is_measured_in_units_of_utf_16(harness: OffsetHarness) -> None:
    too_large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert harness.commit(
        {"t": {0: (1, "x" * 4097), 1: (1, "é" * 4096), 2: (1, "😀" * 2048), 3: (1, "😀" * 2049)}}
    ) == {"t": {0: too_large, 1: OK, 2: OK, 3: too_large}}
    assert harness.commit({"u": {0: (1, None)}}) == {"u": {0: OK}}
    assert harness.held()["g", "u", 0].metadata == ""


@pytest.mark.parametrize("offset", [-7, -1, 2**63 - 1])
def test_any_offset_may_be_committed(harness: OffsetHarness, offset: int) -> None:
    assert harness.commit({"t": {0: offset}}, leader_epoch=-5) == {"t": {0: OK}}
    assert harness.held()["g", "t", 0][:2] == (offset, -5)


def test_a_retention_in_the_request_sets_an_expiry(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: (7, "m")}}, retention_ms=1000, version=4)
    (record,) = harness.written
    assert record.version == 1
    assert harness.held()["g", "t", 0] == record.value
    assert record.value == CommittedOffset(7, -1, "m", START_MS, START_MS + 1000, ZERO)


def test_a_commit_outside_of_groups_creates_a_group(harness: OffsetHarness) -> None:
    assert harness.commit({"t": {0: 1}}, epoch=-5, member="unknown", group="") == {"t": {0: OK}}
    group = harness.groups.by_id[""]
    assert isinstance(group, ClassicGroup)
    assert (group.state_name, group.protocol_type) == ("Empty", "")


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_generation_of_an_unknown_group_is_an_error(
    harness: OffsetHarness, version: int, code: ErrorCode
) -> None:
    assert harness.commit({"t": {0: 1}}, epoch=0, version=version) is code
    assert harness.commit({"nope": {0: 1}}, epoch=0, version=version) == {
        "nope": {0: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    }
    assert harness.commit({}, epoch=0, version=version) == {}
    assert not harness.written


def test_the_group_checks_the_committing_member(harness: OffsetHarness) -> None:
    group = harness.groups.by_id["g"] = StubGroup()
    assert harness.commit({"t": {0: 1}}, epoch=3, member="m", instance="i") == {"t": {0: OK}}
    assert group.checked == [("m", "i", 3, False, 9)]
    group.append_error = KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "")
    assert harness.commit({"t": {0: 2}, "nope": {0: 2}}) is ErrorCode.STALE_MEMBER_EPOCH
    assert harness.held()["g", "t", 0].offset == 1


def test_a_partition_that_fails_the_check_fails_the_commit(harness: OffsetHarness) -> None:
    def check(topic: str, topic_id: bytes, partition: int) -> None:
        assert topic_id == harness.ids[topic]
        if partition == 1:
            raise KafkaError(ErrorCode.STALE_MEMBER_EPOCH, "")

    group = harness.groups.by_id["g"] = StubGroup()
    group.partition_check = check
    assert harness.commit({"t": {0: 1}}) == {"t": {0: OK}}
    assert harness.commit({"t": {0: 2, 1: 2}}) is ErrorCode.STALE_MEMBER_EPOCH
    assert harness.held()["g", "t", 0].offset == 1


def test_a_commit_that_cannot_be_written_changes_nothing(harness: OffsetHarness) -> None:
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert harness.commit({"t": {0: 1}}) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not harness.held()
    assert not harness.groups.by_id


def test_an_infinite_retention_is_the_largest_timestamp(harness: OffsetHarness) -> None:
    harness.commit({"t": {0: 1}}, retention_ms=(1 << 63) - 1, version=4)
    assert harness.groups.offsets.get("g", "t", 0).expire_timestamp == (1 << 63) - 1


def test_more_offsets_than_fit_into_a_batch_are_an_error(harness: OffsetHarness) -> None:
    harness.environment.create_topic("wide", 30_000)
    raised = harness.commit({"wide": dict.fromkeys(range(30_000), 1)})
    assert raised is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.environment.log.batches == []


@pytest.mark.parametrize("metadata", ["", "m"])
def test_the_bytes_of_a_long_group_id_count_for_each_offset(
    harness: OffsetHarness, metadata: str
) -> None:
    harness.environment.create_topic("wide", 100)
    offsets = dict.fromkeys(range(100), (1, metadata))
    raised = harness.commit({"wide": offsets}, group="g" * 32_000)
    assert raised is ErrorCode.UNKNOWN_SERVER_ERROR
    assert harness.environment.log.batches == []
    accepted = harness.commit({"wide": offsets}, group="g")
    assert accepted == {"wide": dict.fromkeys(range(100), ErrorCode.NONE)}
