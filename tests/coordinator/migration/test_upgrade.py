"""A classic group becomes a consumer group as the first member of that protocol joins it."""

import pytest
from tests.coordinator.migration.harness import (
    GROUP,
    MigrationHarness,
    assignment,
    code_of,
    read_assignment,
    subscription,
)

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ConsumerState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import group_records as wire


@pytest.fixture
def harness() -> MigrationHarness:
    return MigrationHarness({"t": 4, "u": 2})


def test_members_keep_their_partitions_and_generation(harness: MigrationHarness) -> None:
    a, b = harness.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    generation = harness.classic_group.generation

    joined = harness.consumer_heartbeat("new")

    group, t = harness.consumer_group, harness.topic_id("t")
    assert joined.member_epoch == group.epoch == generation + 1
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions == []  # all is taken
    for member_id, partitions in ((a, {0, 1}), (b, {2, 3})):
        member = group.members[member_id]
        assert member.uses_classic_protocol
        assert member.member_epoch == member.previous_member_epoch == generation
        assert member.assigned == {t: dict.fromkeys(partitions, generation)}
        assert member.subscribed_topic_names == {"t"}
    assert group.state is ConsumerState.RECONCILING


def test_the_records_are_kafkas_in_kafkas_order(harness: MigrationHarness) -> None:
    a, b = harness.stable_classic({"t": [0, 1]}, {"t": [2, 3]}, protocols=("range", "sticky"))
    before = len(harness.written)

    harness.consumer_heartbeat("new")

    of_group, members = harness.written[before:], {a, b}
    assert [type(each.key).__name__ for each in of_group[:10]] == [
        "GroupMetadataKey",
        *["ConsumerGroupMemberMetadataKey"] * 2,
        "ConsumerGroupMetadataKey",
        *["ConsumerGroupTargetAssignmentMemberKey"] * 2,
        "ConsumerGroupTargetAssignmentMetadataKey",
        *["ConsumerGroupCurrentMemberAssignmentKey"] * 2,
        "ConsumerGroupMemberMetadataKey",  # the one that joins
    ]
    assert of_group[0].value is None
    assert {each.key.member_id for each in of_group[1:3]} == members
    response = of_group[1].value.classic_member_metadata
    assert response.session_timeout_ms == 10_000
    assert [each.name for each in response.supported_protocols] == ["range", "sticky"]
    assert response.supported_protocols[0].metadata == subscription(["t"])
    assert of_group[6].value == wire.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=1)


def test_the_next_coordinator_loads_the_same_group(harness: MigrationHarness) -> None:
    harness.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    harness.consumer_heartbeat("new")
    before = harness.consumer_group

    harness.lead_again()

    after = harness.consumer_group
    assert after is not before
    for name in ("members", "targets", "epoch", "assignment_epoch", "metadata_hash", "owners"):
        assert getattr(after, name) == getattr(before, name), name


def test_classic_members_rejoin_and_reach_the_target(harness: MigrationHarness) -> None:
    a, b = harness.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    joined = harness.consumer_heartbeat("new")
    epoch = joined.member_epoch

    assert harness.heartbeat(a, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code_of(harness.sync(a, 1)) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = {
        each: harness.join(each, owned={"t": owned}, generation=1).result()
        for each, owned in ((a, [0, 1]), (b, [2, 3]))
    }
    assert all(each.error_code == 0 for each in joins.values())
    [slow] = [
        each for each, response in joins.items() if response.generation_id == 1
    ]  # has to revoke
    synced = harness.sync(slow, 1).result()
    kept = read_assignment(synced.assignment)
    assert harness.heartbeat(slow, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = harness.join(slow, owned=kept, generation=1).result()
    assert again.generation_id == epoch
    assert harness.heartbeat(slow, epoch) == ErrorCode.NONE
    assigned = harness.consumer_heartbeat("new", epoch)
    assert assigned.assignment is not None
    assert [len(each.partitions) for each in assigned.assignment.topic_partitions] == [1]
    assert harness.consumer_group.state is ConsumerState.STABLE


def test_pending_joins_get_rebalance_in_progress_after_the_upgrade(
    harness: MigrationHarness,
) -> None:
    harness.stable_classic({"t": [0, 1, 2, 3]})
    waiting = harness.join(version=3)
    assert not waiting.is_done

    harness.consumer_heartbeat("new")

    response = waiting.result()
    assert response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert response.member_id in harness.consumer_group.members
    assert harness.join(response.member_id).result().generation_id == harness.consumer_group.epoch


def test_pending_syncs_get_rebalance_in_progress_after_the_upgrade(
    harness: MigrationHarness,
) -> None:
    (a,) = harness.stable_classic({"t": [0]})
    other = harness.join(version=3)
    harness.join(a)
    b = other.result().member_id
    waiting = harness.sync(b, 2)
    assert not waiting.is_done

    harness.consumer_heartbeat("new")

    assert code_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS


def test_the_classic_group_leaves_no_timers(harness: MigrationHarness) -> None:
    (a,) = harness.stable_classic({"t": [0]})
    harness.consumer_heartbeat("new")
    old_timers = [key for key in harness.groups.timers._running if "classic" in str(key)]
    assert old_timers == []
    assert harness.heartbeat(a, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_reported_partitions_are_kept_if_a_rebalance_was_abandoned(
    harness: MigrationHarness,
) -> None:
    """A cooperative member consumes on while its group rebalances; the assignment of a generation
    that never got one is empty."""
    terms = {"protocols": ("cooperative-sticky",)}
    a, b = harness.stable_classic({"t": [0, 1]}, {"t": [2, 3]}, **terms)
    first = harness.join(a, owned={"t": [0, 1]}, generation=2, **terms)
    second = harness.join(b, owned={"t": [1, 2, 3]}, generation=1, **terms)
    assert first.result().generation_id == second.result().generation_id
    third = harness.join(version=3, **terms)  # breaks it off before anybody was assigned anything
    assert not third.is_done
    assert all(not each.assignment for each in harness.classic_group.members.values())

    harness.consumer_heartbeat("new")

    group, t = harness.consumer_group, harness.topic_id("t")
    assert set(group.members[a].assigned[t]) == {0, 1}
    assert set(group.members[b].assigned[t]) == {2, 3}  # the later claim wins


def test_of_two_members_with_the_same_partition_one_keeps_it(harness: MigrationHarness) -> None:
    harness.stable_classic({"t": [0, 1]}, {"t": [1, 2]})
    harness.consumer_heartbeat("new")
    owned = [
        partition
        for member in harness.consumer_group.members.values()
        for partition in member.assigned.get(harness.topic_id("t"), ())
    ]
    assert sorted(owned) == sorted(set(owned))


def test_unknown_partitions_and_topics_are_left_out(harness: MigrationHarness) -> None:
    (a,) = harness.stable_classic({"t": [0, 77], "nowhere": [1]}, topics=("t", "nowhere"))
    harness.consumer_heartbeat("new")
    assert set(harness.consumer_group.members[a].assigned[harness.topic_id("t")]) == {0}


def test_an_empty_classic_group_of_any_protocol_is_replaced(harness: MigrationHarness) -> None:
    (a,) = harness.stable_classic({"t": [0]}, protocol_type="connect", metadata=b"?")
    harness.leave((a, None))
    assert harness.classic_group.state is ClassicState.EMPTY

    harness.consumer_heartbeat("new")

    assert isinstance(harness.group, ConsumerGroup)
    assert set(harness.consumer_group.members) == {"new"}
    harness.lead_again()
    assert set(harness.consumer_group.members) == {"new"}


@pytest.mark.parametrize(
    ("terms", "assigned", "reason"),
    [
        ({"protocol_type": "connect"}, b"", "does not use the consumer embedded protocol"),
        ({"metadata": b"\xff"}, b"", "the embedded consumer protocol is malformed"),
        ({"metadata": b"\xff\xff\0"}, b"", "the embedded consumer protocol is malformed"),
        ({}, b"\0", "the embedded consumer protocol is malformed"),
        ({}, assignment({"t": [0]}, user_data=b"x"), "an unsupported custom assignor is in use"),
    ],
)
def test_a_group_with_an_unsupported_protocol_stays_classic(
    harness: MigrationHarness, terms: dict[str, object], assigned: bytes, reason: str
) -> None:
    (a,) = harness.stable_classic({}, **terms)
    harness.classic_group.members[a].assignment = assigned

    with pytest.raises(KafkaError, match=reason) as append_error:
        harness.consumer_heartbeat("new")

    assert append_error.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(harness.group, ClassicGroup)
    assert harness.heartbeat(a, 1) == ErrorCode.NONE


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_policy_may_keep_groups_classic(policy: str) -> None:
    harness = MigrationHarness(group_consumer_migration_policy=policy)
    harness.stable_classic({"t": [0]})
    with pytest.raises(KafkaError, match="online upgrade is disabled"):
        harness.consumer_heartbeat("new")


def test_a_group_that_is_too_large_for_a_consumer_group_stays_classic() -> None:
    harness = MigrationHarness(group_consumer_max_size=1)
    harness.stable_classic({"t": [0]}, {"t": [1]})
    with pytest.raises(KafkaError, match="exceeds the consumer group maximum size"):
        harness.consumer_heartbeat("new")


def test_a_group_stays_as_it_is_if_its_migration_cannot_be_written(
    harness: MigrationHarness,
) -> None:
    (a,) = harness.stable_classic({"t": [0]})
    waiting = harness.join(version=3)
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

    with pytest.raises(KafkaError):
        harness.consumer_heartbeat("new")

    harness.environment.log.append_error = None
    assert isinstance(harness.group, ClassicGroup)
    assert not waiting.is_done
    assert harness.join(a).result().generation_id == 2
    assert waiting.result().generation_id == 2
    assert harness.consumer_heartbeat("new").member_epoch == 3


def test_a_member_may_change_to_the_other_protocol_under_its_own_id(
    harness: MigrationHarness,
) -> None:
    (a,) = harness.stable_classic({"t": [0, 1, 2, 3]})
    joined = harness.consumer_heartbeat(a)
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert not harness.consumer_group.members[a].uses_classic_protocol
    assert harness.heartbeat(a, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def stable_static(harness: MigrationHarness) -> None:
    """A classic group of one static member "i", which has all of "t"."""
    joining = harness.join(instance="i")
    harness.advance(0)
    joined = joining.result()
    assigned = {joined.member_id: assignment({"t": [0, 1, 2, 3]})}
    harness.sync(joined.member_id, joined.generation_id, assigned, instance="i").result()


def test_a_static_member_may_change_protocols_without_a_new_assignment(
    harness: MigrationHarness,
) -> None:
    stable_static(harness)
    joined = harness.consumer_heartbeat("new", instance="i")
    assert joined.member_epoch == harness.consumer_group.epoch == 1
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]


def test_an_upgraded_group_is_assigned_again_if_it_had_to_rebalance(
    harness: MigrationHarness,
) -> None:
    stable_static(harness)
    joining = harness.join(instance="j")
    assert harness.classic_group.state is ClassicState.PREPARING_REBALANCE
    harness.consumer_heartbeat("new", instance="i")
    assert code_of(joining) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.consumer_group.epoch == 2
    assert set(harness.consumer_group.targets) == {"new", *harness.consumer_group.members}


def test_an_upgraded_group_is_assigned_again_if_topics_have_grown(
    harness: MigrationHarness,
) -> None:
    stable_static(harness)
    harness.environment.create_topic("t", 5)
    joined = harness.consumer_heartbeat("new", instance="i")
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4]


def test_silent_classic_members_are_fenced(harness: MigrationHarness) -> None:
    (a,) = harness.stable_classic({"t": [0]})
    epoch = harness.consumer_heartbeat("new").member_epoch
    harness.advance(9_999)
    assert a in harness.consumer_group.members
    harness.advance(1)
    assert set(harness.consumer_group.members) == {"new"}
    assert harness.consumer_heartbeat("new", epoch).member_epoch == epoch + 1
    assert GROUP in harness.groups.by_id
