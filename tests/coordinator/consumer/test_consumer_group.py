"""The checks of offsets, listing and deletion in a consumer group, and its description."""

import pytest
from tests.coordinator.consumer.harness import GROUP, INTERVAL_MS, ConsumerHarness, Member

from barnabas.coordinator.groups import consumer
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Subscriptions
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.group import GroupType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import ClassicMemberMetadata


@pytest.fixture
def harness() -> ConsumerHarness:
    return ConsumerHarness()


def commit(
    harness: ConsumerHarness,
    member_id: str,
    epoch: int,
    partition: tuple[str, bytes, int] | None = None,
    *,
    transactional: bool = False,
    api_version: int = 9,
) -> ErrorCode:
    try:
        check = harness.group.check_commit(
            member_id, None, epoch, transactional=transactional, api_version=api_version
        )
        if check is not None and partition is not None:
            check(*partition)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def fetch(harness: ConsumerHarness, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        harness.group.check_fetch(member_id, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_members_commit_with_their_epoch(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    assert commit(harness, "m", epoch) == ErrorCode.NONE
    assert commit(harness, "m", epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(harness, "x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(harness, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(harness, "m", epoch, api_version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(harness, "m", epoch, api_version=3, transactional=True) == ErrorCode.NONE


def test_an_older_epoch_may_commit_partitions_owned_since_then(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 2)
    member = Member(harness, "m")
    member.join("t")
    old = member.epoch
    harness.topic("t", 3)
    harness.advance(INTERVAL_MS)
    member.heartbeat()
    assert member.epoch == old + 1
    assert commit(harness, "m", old, ("t", topic_id, 0)) == ErrorCode.NONE
    assert commit(harness, "m", old, ("t", topic_id, 2)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(harness, "m", old, ("t", topic_id, 9)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(harness, "m", old - 1, ("t", topic_id, 0)) == ErrorCode.STALE_MEMBER_EPOCH


def test_partitions_in_revocation_may_still_be_committed(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 2)
    harness.join("a", "t")
    harness.join("b", "t")
    harness.advance(INTERVAL_MS)
    harness.heartbeat("a", 2)
    (revoked,) = harness.group.members["a"].pending_revocation[topic_id]
    assert commit(harness, "a", 2, ("t", topic_id, revoked)) == ErrorCode.NONE


def test_a_classic_member_at_another_epoch_gets_illegal_generation(
    harness: ConsumerHarness,
) -> None:
    harness.stable("m")
    classic = ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=[])
    harness.group.put_member(ConsumerMember("c", member_epoch=4, classic=classic))
    assert commit(harness, "c", 5) == ErrorCode.ILLEGAL_GENERATION
    assert commit(harness, "c", 3, ("t", bytes(16), 0)) == ErrorCode.ILLEGAL_GENERATION
    assert commit(harness, "c", 4, api_version=7) == ErrorCode.NONE
    assert fetch(harness, "c", 3) == ErrorCode.ILLEGAL_GENERATION


def test_any_client_may_commit_for_an_empty_group(harness: ConsumerHarness) -> None:
    harness.stable("m")
    assert commit(harness, "", -1, transactional=True) == ErrorCode.NONE
    harness.heartbeat("m", -1)
    assert commit(harness, "", -1) == ErrorCode.NONE


def test_members_fetch_with_their_epoch_and_other_clients_without(harness: ConsumerHarness) -> None:
    epoch = harness.stable("m")
    assert fetch(harness, "m", epoch) == ErrorCode.NONE
    assert fetch(harness, "m", epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(harness, "x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(harness, None, -1) == ErrorCode.NONE


def test_only_an_empty_group_may_be_deleted(harness: ConsumerHarness) -> None:
    harness.stable("m")
    with pytest.raises(KafkaError) as append_error:
        harness.group.check_delete()
    assert append_error.value.code == ErrorCode.NON_EMPTY_GROUP
    harness.heartbeat("m", -1)
    harness.group.check_delete()


def test_the_tombstones_of_a_group_delete_all_of_it(harness: ConsumerHarness) -> None:
    harness.stable("m", "n")
    harness.heartbeat("m", 3, subscribed_topic_regex="t.*", topic_partitions=None)
    harness.advance(0)
    for record in harness.group.tombstones():
        harness.groups.replay(record, -1)
    assert not harness.groups.by_id
    assert not harness.groups.subscriptions.of("t")


def test_offsets_of_subscribed_topics_are_in_use(harness: ConsumerHarness) -> None:
    harness.stable("m")
    assert harness.group.is_subscribed_to("t")
    assert not harness.group.is_subscribed_to("u")
    assert harness.group.retention_start_ms(17) == 17
    harness.group.check_delete_offsets()
    harness.heartbeat("m", -1)
    assert not harness.group.is_subscribed_to("t")


def test_a_group_is_listed_with_its_state_and_protocol() -> None:
    group = ConsumerGroup("g", Subscriptions())
    assert (group.group_type, group.protocol_type) == (GroupType.CONSUMER, "consumer")
    assert (group.state_name, group.is_empty) == ("Empty", True)


def test_a_group_is_described_with_assignments_and_targets(harness: ConsumerHarness) -> None:
    topic_id = harness.topic("t", 4)
    harness.join("a", "t", rack_id="r", server_assignor="range")
    harness.join("b", "t")
    harness.advance(INTERVAL_MS)
    harness.heartbeat("a", 2)
    response = consumer.describe(
        GROUP, harness.groups, harness.environment.coordinator._timer_context()
    )
    assert (response.group_state, response.group_epoch, response.assignment_epoch) == (
        "Reconciling",
        3,
        3,
    )
    assert response.assignor_name == "range"
    first, second = response.members
    assert (first.member_id, first.rack_id, first.member_epoch, first.member_type) == (
        "a", "r", 2, 1,
    )  # fmt: skip
    assert (first.client_id, first.client_host) == ("client", "/10.0.0.1")
    (has,) = first.assignment.topic_partitions
    assert (has.topic_id, has.topic_name, has.partitions) == (topic_id, "t", [0, 1, 2, 3])
    (is_to_have,) = first.target_assignment.topic_partitions
    assert is_to_have.partitions == [0, 1]
    assert second.assignment.topic_partitions == []
    assert second.target_assignment.topic_partitions[0].partitions == [2, 3]


def test_a_deleted_topic_is_not_described(harness: ConsumerHarness) -> None:
    harness.stable("m")
    harness.environment.delete_topic("t")
    (member,) = consumer.describe(
        GROUP, harness.groups, harness.environment.coordinator._timer_context()
    ).members
    assert member.assignment.topic_partitions == []


def test_an_unknown_consumer_group_is_not_described(harness: ConsumerHarness) -> None:
    with pytest.raises(KafkaError) as append_error:
        consumer.describe(GROUP, harness.groups, harness.environment.coordinator._timer_context())
    assert append_error.value.code == ErrorCode.GROUP_ID_NOT_FOUND
