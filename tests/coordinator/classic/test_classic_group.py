"""The checks of offsets, listing and deletion in each state of a classic group."""

import pytest
from tests.coordinator.classic.harness import DELAY_MS, GROUP, ClassicHarness, subscription

from barnabas.coordinator.groups import classic
from barnabas.coordinator.groups.classic.group import TRANSITIONS, ClassicGroup, ClassicState
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.group import Group, GroupType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.groups import DescribedGroup


@pytest.fixture
def harness() -> ClassicHarness:
    return ClassicHarness()


def commit_code(
    group: ClassicGroup,
    member_id: str = "",
    generation: int = -1,
    *,
    instance: str | None = None,
    transactional: bool = False,
) -> ErrorCode:
    try:
        group.check_commit(
            member_id, instance, generation, transactional=transactional, api_version=9
        )
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def describe(harness: ClassicHarness, group: str = GROUP, version: int = 6) -> DescribedGroup:
    context = harness.environment.coordinator._context(GroupClient("client", "/10.0.0.1", version))
    return classic.describe(group, harness.groups, context)


def test_a_record_of_a_group_without_members_is_minimal() -> None:
    group = ClassicGroup("offsets", 1_000)
    assert group.state_name == "Empty"
    assert group.is_empty
    assert group.group_type is GroupType.CLASSIC
    assert group.protocol_type == ""
    assert group.retention_start_ms(5) == 5
    assert not group.is_subscribed_to("t")
    group.check_delete()
    group.check_delete_offsets()
    assert commit_code(group) == ErrorCode.NONE


def test_a_dead_group_stays_dead() -> None:
    assert TRANSITIONS[ClassicState.DEAD] == {ClassicState.DEAD}
    assert all(ClassicState.DEAD in moves for moves in TRANSITIONS.values())


def test_a_transition_that_is_not_in_the_table_is_a_bug() -> None:
    with pytest.raises(AssertionError):
        ClassicGroup("g", 0).transition(ClassicState.STABLE, 0)


# Commits


def test_a_client_without_a_generation_may_commit_to_an_empty_group(
    harness: ClassicHarness,
) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    assert commit_code(harness.group) == ErrorCode.NONE
    assert commit_code(harness.group, "nobody", -1) == ErrorCode.NONE
    assert commit_code(harness.group, member, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_only_members_commit_to_a_group_with_members(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    assert commit_code(harness.group, member, 1) == ErrorCode.NONE
    assert commit_code(harness.group, member, 0) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness.group, member, -1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness.group) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(harness.group, "nobody", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(harness.group, "", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(harness.group, member, 1, instance="a") == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_commit_while_a_rebalance_is_prepared_but_not_before_the_sync(
    harness: ClassicHarness,
) -> None:
    (old,) = harness.stable()
    harness.enter()
    assert commit_code(harness.group, old, 1) == ErrorCode.NONE
    harness.join(old)
    assert commit_code(harness.group, old, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert commit_code(harness.group, old, 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit_code(harness.group, old, 2, transactional=True) == ErrorCode.NONE


def test_a_transaction_commits_without_naming_a_member(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    assert commit_code(harness.group, transactional=True) == ErrorCode.NONE
    assert commit_code(harness.group, member, 0, transactional=True) == (
        ErrorCode.ILLEGAL_GENERATION
    )


def test_a_commit_to_a_dead_group_is_an_error() -> None:
    group = ClassicGroup("g", 0)
    group.transition(ClassicState.DEAD, 1)
    assert commit_code(group) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    for check in group.check_delete, group.check_delete_offsets:
        with pytest.raises(KafkaError) as raised:
            check()
        assert raised.value.code == ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(KafkaError):
        group.check_fetch(None, -1)


# Deletion and expiry


def test_a_group_with_members_is_not_deleted(harness: ClassicHarness) -> None:
    harness.stable()
    with pytest.raises(KafkaError) as raised:
        harness.group.check_delete()
    assert raised.value.code == ErrorCode.NON_EMPTY_GROUP
    harness.group.check_delete_offsets()


def test_offsets_of_a_group_that_is_not_of_consumers_are_not_deleted(
    harness: ClassicHarness,
) -> None:
    harness.stable(protocol_type="connect")
    with pytest.raises(KafkaError) as raised:
        harness.group.check_delete_offsets()
    assert raised.value.code == ErrorCode.NON_EMPTY_GROUP
    assert harness.group.retention_start_ms(5) is None
    assert not harness.group.is_subscribed_to("t")


def test_offsets_of_an_empty_group_expire_from_when_it_became_empty(
    harness: ClassicHarness,
) -> None:
    (member,) = harness.stable()
    assert harness.group.retention_start_ms(5) == 5
    harness.advance(100)
    harness.leave((member, None))
    assert harness.group.retention_start_ms(5) == harness.environment.clock.now_ms


def test_offsets_do_not_expire_while_a_group_rebalances(harness: ClassicHarness) -> None:
    harness.stable()
    harness.enter()
    assert harness.group.retention_start_ms(5) is None


def test_a_tombstone_deletes_the_group(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    harness.leave((member, None))
    harness.join()
    group: Group = harness.group
    (tombstone,) = group.tombstones()
    harness.groups.replay(tombstone, -1)
    assert not harness.groups.by_id
    assert group.state_name == "Dead"
    assert harness.alarm_count == 0


# Subscriptions


def test_a_group_is_subscribed_to_the_topics_of_all_members(harness: ClassicHarness) -> None:
    harness.enter(topics=("a", "b"))
    second, _ = harness.enter(topics=("c",))
    harness.advance(DELAY_MS * 2)
    assert all(harness.group.is_subscribed_to(each) for each in "abc")
    assert not harness.group.is_subscribed_to("d")
    harness.leave((second, None))
    harness.advance(100_000)
    assert harness.group.is_empty
    assert not harness.group.is_subscribed_to("a")


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\1\0\0\0\1", b"\xff" * 6])
def test_a_subscription_that_cannot_be_read_may_be_to_anything(
    harness: ClassicHarness, metadata: bytes
) -> None:
    harness.stable(metadata=metadata)
    assert harness.group.is_subscribed_to("t")
    assert harness.group.retention_start_ms(5) is None


def test_a_subscription_of_a_future_version_is_read_as_far_as_known(
    harness: ClassicHarness,
) -> None:
    harness.stable(metadata=b"\x00\x63" + subscription("t")[2:] + b"more")
    assert harness.group.subscribed_topics == {"t"}


# DescribeGroups


def test_a_stable_group_is_described_with_its_members_metadata(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    described = describe(harness)
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable", "consumer", "range",
    )  # fmt: skip
    (each,) = described.members
    assert (each.member_id, each.client_id, each.client_host) == (member, "client", "/10.0.0.1")
    assert (each.member_metadata, each.member_assignment) == (subscription("t"), member.encode())


def test_a_rebalancing_group_is_described_without_metadata(harness: ClassicHarness) -> None:
    (member,) = harness.stable()
    harness.enter()
    described = describe(harness)
    assert (described.group_state, described.protocol_data) == ("PreparingRebalance", "")
    assert [each.member_metadata for each in described.members] == [b"", b""]
    assert described.members[0].member_assignment == member.encode()


def test_an_unknown_group_is_described_as_dead(harness: ClassicHarness) -> None:
    for version in range(7):
        described = describe(harness, "nobody's", version)
        assert described.group_state == "Dead"
        is_error = version == 6
        assert (described.error_code == ErrorCode.GROUP_ID_NOT_FOUND) is is_error
        assert (described.error_message == "Group nobody's not found.") is is_error
