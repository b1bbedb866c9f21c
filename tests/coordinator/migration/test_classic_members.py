"""Members of the classic protocol in a consumer group: the responses to each of their requests."""

import pytest
from tests.coordinator.migration.harness import (
    GROUP,
    REBALANCE_MS,
    MigrationHarness,
    code_of,
    read_assignment,
    subscription,
)

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import LeaveGroupRequest


@pytest.fixture
def harness() -> MigrationHarness:
    """A group of one member, "new", who speaks the consumer protocol and has everything."""
    harness = MigrationHarness({"t": 4, "u": 2})
    harness.consumer_heartbeat("new")
    return harness


def assigned(
    harness: MigrationHarness, member_id: str, generation: int, **terms: object
) -> set[int]:
    """Returns the partitions that SyncGroup assigns to a member."""
    synced = harness.sync(member_id, generation, **terms).result()  # type: ignore[arg-type]
    assert synced.error_code == 0
    return read_assignment(synced.assignment).get("t", set())


def release(harness: MigrationHarness, *partitions: int) -> None:
    """Have "new" say it has no more than these."""
    member = harness.consumer_group.members["new"]
    owned = {harness.topic_id("t"): partitions}
    harness.consumer_heartbeat("new", member.member_epoch, owned=owned)


# JoinGroup


def test_a_join_to_a_consumer_group_completes_at_once_without_a_leader(
    harness: MigrationHarness,
) -> None:
    joined = harness.join("a").result()
    assert joined.error_code == 0
    assert joined.generation_id == harness.consumer_group.epoch == 3
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert (joined.leader, joined.members, joined.skip_assignment) == ("", [], False)
    member = harness.consumer_group.members["a"]
    assert member.uses_classic_protocol
    assert member.rebalance_timeout_ms == REBALANCE_MS
    assert member.state is MemberState.UNRELEASED_PARTITIONS


def test_an_empty_instance_id_is_that_of_one_member_only(harness: MigrationHarness) -> None:
    harness.join(instance="")
    harness.join("dynamic")
    targets = [target[harness.topic_id("t")] for target in harness.consumer_group.targets.values()]
    assert sorted(each for partitions in targets for each in partitions) == [0, 1, 2, 3]


def test_a_dynamic_member_gets_its_id_first(harness: MigrationHarness) -> None:
    response = harness.join().result()
    assert response.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert response.generation_id == -1
    assert len(response.member_id) == 22
    assert set(harness.consumer_group.members) == {"new"}
    assert harness.join(response.member_id).result().member_id == response.member_id
    old_client = harness.join(version=3).result()
    assert (old_client.error_code, old_client.protocol_type) == (0, "consumer")
    assert old_client.member_id in harness.consumer_group.members


@pytest.mark.parametrize(
    ("terms", "code"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"metadata": b"\0"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"session_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
@pytest.mark.parametrize("version", [5, 9])
def test_a_rejected_join_changes_nothing(
    harness: MigrationHarness, terms: dict[str, object], code: ErrorCode, version: int
) -> None:
    written = len(harness.written)
    response = harness.join("a", version=version, **terms).result()  # type: ignore[arg-type]
    assert response.error_code == code
    assert response.generation_id == -1
    assert response.protocol_name == ("" if version < 7 else None)
    assert response.member_id == ("a" if code is ErrorCode.INVALID_SESSION_TIMEOUT else "")
    assert len(harness.written) == written
    assert set(harness.consumer_group.members) == {"new"}


def test_classic_members_must_have_a_protocol_in_common(harness: MigrationHarness) -> None:
    harness.join("a", protocols=("range", "sticky"))
    assert code_of(harness.join("b", protocols=("roundrobin",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    second = harness.join("b", protocols=("roundrobin", "sticky")).result()
    assert second.protocol_name == "roundrobin"  # the first of its own: the name means nothing
    assert code_of(harness.join("a", protocols=("range",))) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_consumer_group_rejects_new_members() -> None:
    harness = MigrationHarness(group_consumer_max_size=2)
    harness.consumer_heartbeat("new")
    harness.join("a")
    assert code_of(harness.join("b")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code_of(harness.join("a")) == ErrorCode.NONE


def test_a_policy_may_reject_classic_members() -> None:
    harness = MigrationHarness(group_consumer_migration_policy="disabled")
    harness.consumer_heartbeat("new")
    assert code_of(harness.join("a")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_subscription_of_a_future_version_is_read(harness: MigrationHarness) -> None:
    metadata = b"\0\x63" + subscription(["t", "u"])[2:] + b"more"
    joined = harness.join("a", metadata=metadata).result()
    assert harness.consumer_group.members["a"].subscribed_topic_names == {"t", "u"}
    synced = harness.sync("a", joined.generation_id).result()
    assert synced.assignment[:2] == b"\0\x03"


def test_a_member_gets_its_assignment_in_its_own_version(harness: MigrationHarness) -> None:
    joined = harness.join("a", metadata=subscription(["t"], version=1)).result()
    assert harness.sync("a", joined.generation_id).result().assignment[:2] == b"\0\x01"


def test_a_rejoin_changes_only_what_is_different(harness: MigrationHarness) -> None:
    first = harness.join("a").result()
    harness.join("a")  # the response may have been lost: the previous epoch is no longer valid
    written = len(harness.written)
    again = harness.join("a").result()
    assert again.generation_id == first.generation_id
    assert len(harness.written) == written
    harness.join("a", topics=("t", "u"))
    assert harness.consumer_group.epoch == first.generation_id + 1


def test_a_member_of_the_consumer_protocol_may_join_by_the_classic_one(
    harness: MigrationHarness,
) -> None:
    joined = harness.join("new").result()
    assert joined.generation_id == 2
    assert assigned(harness, "new", 2) == {0, 1, 2, 3}
    assert harness.consumer_group.members["new"].uses_classic_protocol


# The way to the target


def test_a_new_member_gets_partitions_as_they_are_released(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    assert assigned(harness, "a", generation) == set()
    assert harness.heartbeat("a", generation) == ErrorCode.NONE  # it waits for "new"
    release(harness, 0, 1, 2, 3)
    assert harness.heartbeat("a", generation) == ErrorCode.NONE
    release(harness, 0, 1)
    assert harness.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join("a", generation=generation).result().generation_id == generation
    assert assigned(harness, "a", generation) == {2, 3}
    assert harness.heartbeat("a", generation) == ErrorCode.NONE


def test_a_cooperative_member_revokes_before_its_epoch_is_bumped(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    release(harness, 0, 1)
    harness.join("a")
    harness.consumer_heartbeat("other")
    epoch = harness.consumer_heartbeat("another").member_epoch
    assert harness.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS

    held = {"t": [2, 3]}
    assert harness.join("a", owned=held).result().generation_id == generation
    kept = assigned(harness, "a", generation)
    assert kept < {2, 3}
    assert harness.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert harness.join("a", owned={"t": kept}).result().generation_id == epoch
    assert assigned(harness, "a", epoch) == kept


def test_an_eager_member_has_revoked_everything_when_it_joins(harness: MigrationHarness) -> None:
    harness.join("a")
    release(harness, 0, 1)
    harness.join("a")
    harness.consumer_heartbeat("other")
    epoch = harness.consumer_heartbeat("another").member_epoch
    assert harness.join("a").result().generation_id == epoch
    assert len(assigned(harness, "a", epoch)) == 1


def test_a_sync_before_the_join_is_an_error_once_there_is_a_new_target(
    harness: MigrationHarness,
) -> None:
    generation = harness.join("a").result().generation_id
    harness.consumer_heartbeat("other")
    assert code_of(harness.sync("a", generation)) == ErrorCode.REBALANCE_IN_PROGRESS


# Checks of the sender


def test_unknown_members_and_those_of_the_other_protocol_are_rejected(
    harness: MigrationHarness,
) -> None:
    for member_id in ("nobody", "new", ""):
        assert harness.heartbeat(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID
        assert code_of(harness.sync(member_id, 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_generation_must_be_the_members_epoch(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    for wrong in (generation - 1, generation + 1, -1):
        assert harness.heartbeat("a", wrong) == ErrorCode.ILLEGAL_GENERATION
        assert code_of(harness.sync("a", wrong)) == ErrorCode.ILLEGAL_GENERATION


def test_a_sync_must_name_the_members_protocol(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    for wrong in ({"protocol": "sticky"}, {"protocol_type": "connect"}, {"protocol": None}):
        response = harness.sync("a", generation, **wrong)  # type: ignore[arg-type]
        assert code_of(response) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    response = harness.sync("a", generation, protocol=None, protocol_type=None, version=4)
    assert code_of(response) == ErrorCode.NONE


# Static members


def test_a_static_member_keeps_its_partitions_over_a_restart(harness: MigrationHarness) -> None:
    first = harness.join(instance="i").result()
    release(harness, 0, 1)
    harness.join(first.member_id, instance="i")
    assert assigned(harness, first.member_id, 3, instance="i") == {2, 3}
    epoch = harness.consumer_group.epoch

    second = harness.join(instance="i").result()

    assert second.member_id != first.member_id
    assert second.generation_id == epoch == harness.consumer_group.epoch
    assert assigned(harness, second.member_id, epoch, instance="i") == {2, 3}
    old = first.member_id
    assert harness.heartbeat(old, epoch, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert harness.heartbeat(old, epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(harness.join(old, instance="i")) == ErrorCode.FENCED_INSTANCE_ID
    assert code_of(harness.sync(old, epoch, instance="i")) == ErrorCode.FENCED_INSTANCE_ID


def test_an_unknown_instance_id_is_an_error(harness: MigrationHarness) -> None:
    harness.join("a")
    assert code_of(harness.join("a", instance="i")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert harness.heartbeat("a", 3, "i") == ErrorCode.UNKNOWN_MEMBER_ID


# LeaveGroup


def test_members_leave_one_by_one_or_together(harness: MigrationHarness) -> None:
    harness.join("a")
    harness.join(instance="i")
    harness.join("b")
    epoch = harness.consumer_group.epoch
    codes = harness.leave(("a", None), ("nobody", None), ("", "i"), ("b", "i"), ("", "j"))
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(harness.consumer_group.members) == {"new", "b"}
    assert harness.consumer_group.epoch == epoch + 1
    assert harness.leave() == []


def test_administrators_can_remove_members_of_the_consumer_protocol(
    harness: MigrationHarness,
) -> None:
    assert harness.leave(("new", None), ("new", None)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert harness.consumer_group.is_empty


def test_old_clients_leave_one_at_a_time(harness: MigrationHarness) -> None:
    harness.join("a")
    for member_id, code in (("nobody", ErrorCode.UNKNOWN_MEMBER_ID), ("a", ErrorCode.NONE)):
        request = LeaveGroupRequest(group_id=GROUP, member_id=member_id)
        response = harness.send(request, 2).result()
        assert (response.error_code, response.members) == (code, [])
    assert set(harness.consumer_group.members) == {"new"}


# Time


def test_a_silent_classic_member_is_fenced(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    harness.sync("a", generation)
    harness.advance(9_000)
    assert harness.heartbeat("a", generation) == ErrorCode.NONE
    harness.advance(9_999)
    assert "a" in harness.consumer_group.members
    harness.advance(1)
    assert "a" not in harness.consumer_group.members


def test_a_member_that_does_not_rejoin_in_time_is_fenced(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    harness.sync("a", generation)
    harness.consumer_heartbeat("other")
    for _ in range(REBALANCE_MS // 5_000):
        assert harness.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
        harness.advance(5_000)
    assert harness.heartbeat("a", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_and_does_not_sync_is_fenced(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    for _ in range(REBALANCE_MS // 5_000):
        assert harness.heartbeat("a", generation) == ErrorCode.NONE
        harness.advance(5_000)
    assert "a" not in harness.consumer_group.members


def test_a_member_that_joins_and_syncs_stays(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    harness.sync("a", generation)
    harness.consumer_heartbeat("other")
    harness.heartbeat("a", generation)
    generation = harness.join("a").result().generation_id
    harness.sync("a", generation)
    for _ in range(4 * REBALANCE_MS // 5_000):
        harness.advance(5_000)
        for each in ("new", "other"):
            harness.consumer_heartbeat(each, harness.consumer_group.members[each].member_epoch)
        code = harness.heartbeat("a", harness.consumer_group.members["a"].member_epoch)
        if code:
            generation = harness.join("a").result().generation_id
            harness.sync("a", generation)
    assert "a" in harness.consumer_group.members


def test_after_a_failover_members_continue_as_before(harness: MigrationHarness) -> None:
    generation = harness.join("a").result().generation_id
    harness.lead_again()
    assert assigned(harness, "a", generation) == set()
    assert harness.heartbeat("a", generation) == ErrorCode.NONE
    release(harness, 0, 1)
    assert harness.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
