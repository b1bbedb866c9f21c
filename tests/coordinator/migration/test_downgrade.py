"""A consumer group becomes classic again as the last member of the consumer protocol goes."""

import pytest
from tests.coordinator.migration.harness import (
    REBALANCE_MS,
    MigrationHarness,
    code_of,
    read_assignment,
)

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ConsumerState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import group_records as wire


@pytest.fixture
def harness() -> MigrationHarness:
    return MigrationHarness()


def mixed(
    harness: MigrationHarness, *ids: str, instance: str | None = None, **terms: object
) -> int:
    """A stable consumer group of "new", who speaks the consumer protocol, and of classic members
    with these ids; the epoch of all."""
    epoch = harness.consumer_heartbeat("new", instance=instance).member_epoch
    for member_id in ids:
        harness.join(member_id, **terms)  # type: ignore[arg-type]
    for _ in range(4):
        owned = harness.consumer_group.members["new"].assigned
        epoch = harness.consumer_heartbeat(
            "new", epoch, owned=owned, instance=instance
        ).member_epoch
        for member_id in ids:
            member = harness.consumer_group.members[member_id]
            held = {"t": member.assigned.get(harness.topic_id("t"), {})}
            joined = harness.join(member_id, owned=held, **terms).result()  # type: ignore[arg-type]
            harness.sync(member_id, joined.generation_id, protocol=joined.protocol_name).result()
    assert harness.consumer_group.state is ConsumerState.STABLE
    return epoch


def assigned_to(harness: MigrationHarness, member_id: str) -> set[int]:
    return read_assignment(harness.classic_group.members[member_id].assignment)["t"]


def test_the_classic_group_has_the_assignment_and_rebalances(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", "b")
    targets = {each: harness.consumer_group.target(each) for each in ("a", "b")}

    harness.consumer_heartbeat("new", -1)

    group = harness.classic_group
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert group.generation == epoch
    assert set(group.members) == {"a", "b"}
    for each, target in targets.items():
        assert assigned_to(harness, each) == target[harness.topic_id("t")]
        assert harness.heartbeat(each, epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = [harness.join(each) for each in ("a", "b")]
    assert {each.result().generation_id for each in joins} == {epoch + 1}


def test_the_records_are_tombstones_and_the_classic_group(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", protocols=("range", "sticky"))
    before = len(harness.written)

    harness.consumer_heartbeat("new", -1)

    *tombstones, last = harness.written[before:]
    assert all(each.value is None for each in tombstones)
    kinds = [type(each.key).__name__ for each in tombstones]
    assert kinds == [
        *["ConsumerGroupCurrentMemberAssignmentKey"] * 2,
        *["ConsumerGroupTargetAssignmentMemberKey"] * 2,
        "ConsumerGroupTargetAssignmentMetadataKey",
        *["ConsumerGroupMemberMetadataKey"] * 2,
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupMetadataKey",
    ]
    assert isinstance(last.value, wire.GroupMetadataValue)
    assert last.version == 3
    assert (last.value.protocol_type, last.value.protocol) == ("consumer", "range")
    assert last.value.generation == epoch
    assert last.value.leader is None  # a rebalance is due
    assert [each.member_id for each in last.value.members] == ["a"]


def test_members_offer_all_their_protocols_again(harness: MigrationHarness) -> None:
    mixed(harness, "a", protocols=("range", "sticky"))
    harness.consumer_heartbeat("new", -1)
    newcomer = harness.join(protocols=("sticky",), version=3)
    assert not newcomer.is_done  # no error: it waits for "a", which supports that as well
    harness.join("a", protocols=("range", "sticky"))
    assert newcomer.result().protocol_name == "sticky"


def test_fencing_the_last_consumer_member_downgrades_the_group(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a")
    for _ in range(15):
        harness.advance(3_000)
        if isinstance(harness.group, ConsumerGroup):
            assert harness.heartbeat("a", epoch) == ErrorCode.NONE
    assert isinstance(harness.group, ClassicGroup)
    assert harness.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS


def test_removing_the_last_consumer_member_by_an_administrator_downgrades(
    harness: MigrationHarness,
) -> None:
    mixed(harness, "a", instance="i")
    assert harness.leave(("", "i")) == [ErrorCode.NONE]
    assert isinstance(harness.group, ClassicGroup)


def test_sessions_of_the_classic_members_continue(harness: MigrationHarness) -> None:
    mixed(harness, "a")
    harness.consumer_heartbeat("new", -1)
    harness.advance(10_000)
    assert harness.classic_group.state is ClassicState.EMPTY


def test_members_that_do_not_join_the_rebalance_are_removed(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", "b")
    harness.consumer_heartbeat("new", -1)
    waiting = harness.join("a")
    for _ in range(REBALANCE_MS // 5_000):
        harness.advance(5_000)
        harness.heartbeat("b", epoch)
    assert waiting.result().generation_id == epoch + 1
    assert set(harness.classic_group.members) == {"a"}


def test_the_last_to_leave_leaves_a_consumer_group_empty(harness: MigrationHarness) -> None:
    mixed(harness)
    harness.consumer_heartbeat("new", -1)
    assert harness.consumer_group.state is ConsumerState.EMPTY


def test_a_group_with_other_consumer_members_is_not_downgraded(harness: MigrationHarness) -> None:
    mixed(harness, "a")
    harness.consumer_heartbeat("other")
    harness.consumer_heartbeat("new", -1)
    assert set(harness.consumer_group.members) == {"a", "other"}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_policy_may_keep_it_a_consumer_group_and_it_still_assigns(policy: str) -> None:
    harness = MigrationHarness(group_consumer_migration_policy="bidirectional")
    mixed(harness, "a", "b")
    harness.environment.settings = harness.environment.settings.__class__(
        group_consumer_migration_policy=policy, group_consumer_assignment_interval_ms=0
    )
    harness.lead_again()
    harness.consumer_heartbeat("new", -1)
    assert isinstance(harness.group, ConsumerGroup)
    if policy == "upgrade":
        epoch = harness.consumer_group.members["a"].member_epoch
        assert harness.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS
        shares = []
        for each in ("a", "b"):
            joined = harness.join(each).result()
            synced = harness.sync(each, joined.generation_id).result()
            shares.append(read_assignment(synced.assignment)["t"])
        assert set.union(*shares) == {0, 1, 2, 3}


def test_a_group_too_large_to_be_classic_stays(harness: MigrationHarness) -> None:
    harness = MigrationHarness(group_max_size=1)
    mixed(harness, "a", "b")
    harness.consumer_heartbeat("new", -1)
    assert isinstance(harness.group, ConsumerGroup)


def test_the_next_coordinator_loads_the_same_group(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", "b")
    harness.consumer_heartbeat("new", -1)
    assigned = {each: assigned_to(harness, each) for each in ("a", "b")}

    harness.lead_again()

    group = harness.classic_group
    assert group.state is ClassicState.PREPARING_REBALANCE  # which it was about to do
    assert group.generation == epoch
    assert {each: assigned_to(harness, each) for each in ("a", "b")} == assigned


def test_the_next_coordinator_does_not_rebalance_a_stable_group(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a")
    harness.consumer_heartbeat("new", -1)
    joined = harness.join("a").result()
    assert joined.leader == "a"
    harness.sync("a", epoch + 1).result()

    harness.lead_again()

    assert harness.classic_group.state is ClassicState.STABLE
    assert harness.heartbeat("a", epoch + 1) == ErrorCode.NONE


def test_a_group_stays_as_it_is_if_its_migration_cannot_be_written(
    harness: MigrationHarness,
) -> None:
    epoch = mixed(harness, "a")
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

    with pytest.raises(KafkaError):
        harness.consumer_heartbeat("new", -1)

    harness.environment.log.append_error = None
    harness.advance(0)
    assert isinstance(harness.group, ConsumerGroup)
    assert harness.heartbeat("a", epoch) == ErrorCode.NONE
    assert harness.consumer_heartbeat("new", epoch).error_code == 0


def test_a_downgraded_group_has_no_subscriptions(harness: MigrationHarness) -> None:
    mixed(harness, "a")
    assert harness.groups.subscriptions.of("t") == {"g"}
    harness.consumer_heartbeat("new", -1)
    assert harness.groups.subscriptions.of("t") == set()


# Static members that come back by the classic protocol


def test_a_static_member_takes_over_without_a_rebalance(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", instance="i")
    target = harness.consumer_group.target("new")[harness.topic_id("t")]
    harness.consumer_heartbeat("new", -2, instance="i")

    joined = harness.join(instance="i").result()

    group = harness.classic_group
    assert group.state is ClassicState.STABLE
    assert joined.generation_id == group.generation == epoch
    assert joined.member_id not in ("", "new")
    assert group.static_members == {"i": joined.member_id}
    synced = harness.sync(joined.member_id, epoch, instance="i").result()
    assert read_assignment(synced.assignment)["t"] == target
    assert harness.heartbeat("a", epoch) == ErrorCode.NONE
    assert harness.heartbeat(joined.member_id, epoch, "i") == ErrorCode.NONE


def test_a_static_member_replaces_one_that_never_left(harness: MigrationHarness) -> None:
    mixed(harness, instance="i")
    joined = harness.join(instance="i").result()
    assert harness.classic_group.state is ClassicState.STABLE
    assert assigned_to(harness, joined.member_id) == {0, 1, 2, 3}


def test_a_returning_static_member_with_another_subscription_rebalances(
    harness: MigrationHarness,
) -> None:
    harness.environment.create_topic("u", 2)
    epoch = mixed(harness, "a", instance="i")
    joined = harness.join(instance="i", topics=("t", "u")).result()
    assert harness.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert harness.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    response = harness.sync(joined.member_id, joined.generation_id, instance="i")
    assert code_of(response) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_returning_static_member_rebalances_if_topics_have_grown(
    harness: MigrationHarness,
) -> None:
    epoch = mixed(harness, "a", instance="i")
    harness.environment.create_topic("t", 5)
    harness.join(instance="i")
    assert harness.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert harness.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_returning_static_member_rebalances_an_unstable_group(harness: MigrationHarness) -> None:
    epoch = mixed(harness, "a", instance="i")
    harness.join("b")  # joins, and has no partitions yet
    harness.join(instance="i")
    assert harness.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert set(harness.classic_group.members) > {"a", "b"}
    assert harness.classic_group.generation == epoch + 1


def test_a_downgraded_group_rebalances_once_before_the_commit(harness: MigrationHarness) -> None:
    mixed(harness, "a")
    harness.environment.log.is_committing = False
    left = harness.send(harness.leaving("new"))
    assert not left.is_done
    assert harness.classic_group.state is ClassicState.PREPARING_REBALANCE
    joined = harness.join("a")
    assert harness.classic_group.state is ClassicState.COMPLETING_REBALANCE
    harness.environment.log.is_committing = True
    harness.environment.log.commit()
    assert left.result().error_code == 0
    assert joined.result().generation_id == harness.classic_group.generation
    assert harness.classic_group.state is ClassicState.COMPLETING_REBALANCE
