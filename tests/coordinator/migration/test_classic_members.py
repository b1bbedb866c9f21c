"""Members of the classic protocol in a consumer group: what each of their requests is answered."""

import pytest
from tests.coordinator.migration.house import (
    GROUP,
    REBALANCE_MS,
    House,
    code_of,
    read_assignment,
    subscription,
)

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.leave_group import LeaveGroupRequest


@pytest.fixture
def house() -> House:
    """A group of one member, "new", who speaks the consumer protocol and has everything."""
    house = House({"t": 4, "u": 2})
    house.beat("new")
    return house


def given(house: House, member_id: str, generation: int, **terms: object) -> set[int]:
    """What a member hears by SyncGroup that it may consume."""
    synced = house.sync(member_id, generation, **terms).result()  # type: ignore[arg-type]
    assert synced.error_code == 0
    return read_assignment(synced.assignment).get("t", set())


def release(house: House, *partitions: int) -> None:
    """Have "new" say it has no more than these."""
    member = house.consumer_group.members["new"]
    owned = {house.topic_id("t"): partitions}
    house.beat("new", member.member_epoch, owned=owned)


# JoinGroup


def test_a_join_is_answered_at_once_and_nobody_leads(house: House) -> None:
    joined = house.join("a").result()
    assert joined.error_code == 0
    assert joined.generation_id == house.consumer_group.epoch == 3
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert (joined.leader, joined.members, joined.skip_assignment) == ("", [], False)
    member = house.consumer_group.members["a"]
    assert member.uses_classic_protocol
    assert member.rebalance_timeout_ms == REBALANCE_MS
    assert member.state is MemberState.UNRELEASED_PARTITIONS


def test_an_empty_instance_id_is_that_of_one_member_only(house: House) -> None:
    house.join(instance="")
    house.join("dynamic")
    targets = [target[house.topic_id("t")] for target in house.consumer_group.targets.values()]
    assert sorted(each for partitions in targets for each in partitions) == [0, 1, 2, 3]


def test_a_dynamic_member_is_told_its_id_first(house: House) -> None:
    told = house.join().result()
    assert told.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert told.generation_id == -1
    assert len(told.member_id) == 22
    assert set(house.consumer_group.members) == {"new"}
    assert house.join(told.member_id).result().member_id == told.member_id
    old_client = house.join(version=3).result()
    assert (old_client.error_code, old_client.protocol_type) == (0, "consumer")
    assert old_client.member_id in house.consumer_group.members


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
def test_who_cannot_join_is_told_why_and_nothing_changes(
    house: House, terms: dict[str, object], code: ErrorCode, version: int
) -> None:
    written = len(house.written)
    response = house.join("a", version=version, **terms).result()  # type: ignore[arg-type]
    assert response.error_code == code
    assert response.generation_id == -1
    assert response.protocol_name == ("" if version < 7 else None)
    assert response.member_id == ("a" if code is ErrorCode.INVALID_SESSION_TIMEOUT else "")
    assert len(house.written) == written
    assert set(house.consumer_group.members) == {"new"}


def test_classic_members_must_have_a_protocol_in_common(house: House) -> None:
    house.join("a", protocols=("range", "sticky"))
    assert code_of(house.join("b", protocols=("roundrobin",))) == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )
    second = house.join("b", protocols=("roundrobin", "sticky")).result()
    assert second.protocol_name == "roundrobin"  # the first of its own: the name means nothing
    assert code_of(house.join("a", protocols=("range",))) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_no_more() -> None:
    house = House(group_consumer_max_size=2)
    house.beat("new")
    house.join("a")
    assert code_of(house.join("b")) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code_of(house.join("a")) == ErrorCode.NONE


def test_a_policy_may_keep_classic_members_out() -> None:
    house = House(group_consumer_migration_policy="disabled")
    house.beat("new")
    assert code_of(house.join("a")) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_subscription_of_a_version_yet_to_come_is_read(house: House) -> None:
    metadata = b"\0\x63" + subscription(["t", "u"])[2:] + b"more"
    joined = house.join("a", metadata=metadata).result()
    assert house.consumer_group.members["a"].subscribed_topic_names == {"t", "u"}
    synced = house.sync("a", joined.generation_id).result()
    assert synced.assignment[:2] == b"\0\x03"


def test_a_member_is_answered_in_the_version_it_speaks(house: House) -> None:
    joined = house.join("a", metadata=subscription(["t"], version=1)).result()
    assert house.sync("a", joined.generation_id).result().assignment[:2] == b"\0\x01"


def test_joining_again_changes_nothing_but_what_changed(house: House) -> None:
    first = house.join("a").result()
    house.join("a")  # the answer may have been lost: from now on the epoch before does not count
    written = len(house.written)
    again = house.join("a").result()
    assert again.generation_id == first.generation_id
    assert len(house.written) == written
    house.join("a", topics=("t", "u"))
    assert house.consumer_group.epoch == first.generation_id + 1


def test_a_member_of_the_consumer_protocol_may_join_by_the_classic_one(house: House) -> None:
    joined = house.join("new").result()
    assert joined.generation_id == 2
    assert given(house, "new", 2) == {0, 1, 2, 3}
    assert house.consumer_group.members["new"].uses_classic_protocol


# The way to the target


def test_a_newcomer_gets_partitions_as_they_are_given_back(house: House) -> None:
    generation = house.join("a").result().generation_id
    assert given(house, "a", generation) == set()
    assert house.heartbeat("a", generation) == ErrorCode.NONE  # it waits for "new"
    release(house, 0, 1, 2, 3)
    assert house.heartbeat("a", generation) == ErrorCode.NONE
    release(house, 0, 1)
    assert house.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert house.join("a", generation=generation).result().generation_id == generation
    assert given(house, "a", generation) == {2, 3}
    assert house.heartbeat("a", generation) == ErrorCode.NONE


def test_a_cooperative_member_gives_back_before_it_moves_on(house: House) -> None:
    generation = house.join("a").result().generation_id
    release(house, 0, 1)
    house.join("a")
    house.beat("other")
    epoch = house.beat("another").member_epoch
    assert house.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS

    held = {"t": [2, 3]}
    assert house.join("a", owned=held).result().generation_id == generation
    kept = given(house, "a", generation)
    assert kept < {2, 3}
    assert house.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
    assert house.join("a", owned={"t": kept}).result().generation_id == epoch
    assert given(house, "a", epoch) == kept


def test_an_eager_member_has_given_everything_back_as_it_joins(house: House) -> None:
    house.join("a")
    release(house, 0, 1)
    house.join("a")
    house.beat("other")
    epoch = house.beat("another").member_epoch
    assert house.join("a").result().generation_id == epoch
    assert len(given(house, "a", epoch)) == 1


def test_sync_before_join_is_refused_once_there_is_a_new_target(house: House) -> None:
    generation = house.join("a").result().generation_id
    house.beat("other")
    assert code_of(house.sync("a", generation)) == ErrorCode.REBALANCE_IN_PROGRESS


# Who may speak


def test_strangers_and_members_of_the_other_protocol_are_unknown(house: House) -> None:
    for member_id in ("nobody", "new", ""):
        assert house.heartbeat(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID
        assert code_of(house.sync(member_id, 2)) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_generation_must_be_the_members_epoch(house: House) -> None:
    generation = house.join("a").result().generation_id
    for wrong in (generation - 1, generation + 1, -1):
        assert house.heartbeat("a", wrong) == ErrorCode.ILLEGAL_GENERATION
        assert code_of(house.sync("a", wrong)) == ErrorCode.ILLEGAL_GENERATION


def test_sync_names_the_protocol_the_member_was_told(house: House) -> None:
    generation = house.join("a").result().generation_id
    for wrong in ({"protocol": "sticky"}, {"protocol_type": "connect"}, {"protocol": None}):
        answer = house.sync("a", generation, **wrong)  # type: ignore[arg-type]
        assert code_of(answer) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    answer = house.sync("a", generation, protocol=None, protocol_type=None, version=4)
    assert code_of(answer) == ErrorCode.NONE


# Static members


def test_a_static_member_keeps_its_place_over_a_restart(house: House) -> None:
    first = house.join(instance="i").result()
    release(house, 0, 1)
    house.join(first.member_id, instance="i")
    assert given(house, first.member_id, 3, instance="i") == {2, 3}
    epoch = house.consumer_group.epoch

    second = house.join(instance="i").result()

    assert second.member_id != first.member_id
    assert second.generation_id == epoch == house.consumer_group.epoch
    assert given(house, second.member_id, epoch, instance="i") == {2, 3}
    old = first.member_id
    assert house.heartbeat(old, epoch, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert house.heartbeat(old, epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(house.join(old, instance="i")) == ErrorCode.FENCED_INSTANCE_ID
    assert code_of(house.sync(old, epoch, instance="i")) == ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_is_not_known_cannot_be_anybodys(house: House) -> None:
    house.join("a")
    assert code_of(house.join("a", instance="i")) == ErrorCode.UNKNOWN_MEMBER_ID
    assert house.heartbeat("a", 3, "i") == ErrorCode.UNKNOWN_MEMBER_ID


# LeaveGroup


def test_members_leave_one_by_one_or_together(house: House) -> None:
    house.join("a")
    house.join(instance="i")
    house.join("b")
    epoch = house.consumer_group.epoch
    codes = house.leave(("a", None), ("nobody", None), ("", "i"), ("b", "i"), ("", "j"))
    assert codes == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert set(house.consumer_group.members) == {"new", "b"}
    assert house.consumer_group.epoch == epoch + 1
    assert house.leave() == []


def test_members_of_the_consumer_protocol_can_be_removed_so_too(house: House) -> None:
    assert house.leave(("new", None), ("new", None)) == [ErrorCode.NONE, ErrorCode.NONE]
    assert house.consumer_group.is_empty


def test_old_clients_leave_alone(house: House) -> None:
    house.join("a")
    for member_id, code in (("nobody", ErrorCode.UNKNOWN_MEMBER_ID), ("a", ErrorCode.NONE)):
        request = LeaveGroupRequest(group_id=GROUP, member_id=member_id)
        answer = house.ask(request, 2).result()
        assert (answer.error_code, answer.members) == (code, [])
    assert set(house.consumer_group.members) == {"new"}


# Time


def test_a_member_that_is_not_heard_of_is_fenced(house: House) -> None:
    generation = house.join("a").result().generation_id
    house.sync("a", generation)
    house.advance(9_000)
    assert house.heartbeat("a", generation) == ErrorCode.NONE
    house.advance(9_999)
    assert "a" in house.consumer_group.members
    house.advance(1)
    assert "a" not in house.consumer_group.members


def test_a_member_that_does_not_join_when_told_to_is_fenced(house: House) -> None:
    generation = house.join("a").result().generation_id
    house.sync("a", generation)
    house.beat("other")
    for _ in range(REBALANCE_MS // 5_000):
        assert house.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
        house.advance(5_000)
    assert house.heartbeat("a", generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_joins_and_does_not_sync_is_fenced(house: House) -> None:
    generation = house.join("a").result().generation_id
    for _ in range(REBALANCE_MS // 5_000):
        assert house.heartbeat("a", generation) == ErrorCode.NONE
        house.advance(5_000)
    assert "a" not in house.consumer_group.members


def test_one_that_does_both_stays(house: House) -> None:
    generation = house.join("a").result().generation_id
    house.sync("a", generation)
    house.beat("other")
    house.heartbeat("a", generation)
    generation = house.join("a").result().generation_id
    house.sync("a", generation)
    for _ in range(4 * REBALANCE_MS // 5_000):
        house.advance(5_000)
        for each in ("new", "other"):
            house.beat(each, house.consumer_group.members[each].member_epoch)
        code = house.heartbeat("a", house.consumer_group.members["a"].member_epoch)
        if code:
            generation = house.join("a").result().generation_id
            house.sync("a", generation)
    assert "a" in house.consumer_group.members


def test_after_a_failover_members_go_on_as_they_were(house: House) -> None:
    generation = house.join("a").result().generation_id
    house.lead_again()
    assert given(house, "a", generation) == set()
    assert house.heartbeat("a", generation) == ErrorCode.NONE
    release(house, 0, 1)
    assert house.heartbeat("a", generation) == ErrorCode.REBALANCE_IN_PROGRESS
