"""A classic group becomes a consumer group as the first member of that protocol joins it."""

import pytest
from tests.coordinator.migration.house import (
    GROUP,
    House,
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
def house() -> House:
    return House({"t": 4, "u": 2})


def test_members_keep_what_they_have_under_their_generation(house: House) -> None:
    a, b = house.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    generation = house.classic_group.generation

    joined = house.beat("new")

    group, t = house.consumer_group, house.topic_id("t")
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


def test_the_records_are_kafkas_in_kafkas_order(house: House) -> None:
    a, b = house.stable_classic({"t": [0, 1]}, {"t": [2, 3]}, protocols=("range", "sticky"))
    before = len(house.written)

    house.beat("new")

    of_group, members = house.written[before:], {a, b}
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
    told = of_group[1].value.classic_member_metadata
    assert told.session_timeout_ms == 10_000
    assert [each.name for each in told.supported_protocols] == ["range", "sticky"]
    assert told.supported_protocols[0].metadata == subscription(["t"])
    assert of_group[6].value == wire.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=1)


def test_the_group_is_the_same_to_whoever_loads_it(house: House) -> None:
    house.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    house.beat("new")
    before = house.consumer_group

    house.lead_again()

    after = house.consumer_group
    assert after is not before
    for name in ("members", "targets", "epoch", "assignment_epoch", "metadata_hash", "owners"):
        assert getattr(after, name) == getattr(before, name), name


def test_classic_members_are_told_to_join_again_and_are_led_to_the_target(house: House) -> None:
    a, b = house.stable_classic({"t": [0, 1]}, {"t": [2, 3]})
    joined = house.beat("new")
    epoch = joined.member_epoch

    assert house.heartbeat(a, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert code_of(house.sync(a, 1)) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = {
        each: house.join(each, owned={"t": owned}, generation=1).result()
        for each, owned in ((a, [0, 1]), (b, [2, 3]))
    }
    assert all(each.error_code == 0 for each in joins.values())
    [slow] = [each for each, told in joins.items() if told.generation_id == 1]  # has to revoke
    synced = house.sync(slow, 1).result()
    kept = read_assignment(synced.assignment)
    assert house.heartbeat(slow, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    again = house.join(slow, owned=kept, generation=1).result()
    assert again.generation_id == epoch
    assert house.heartbeat(slow, epoch) == ErrorCode.NONE
    given = house.beat("new", epoch)
    assert given.assignment is not None
    assert [len(each.partitions) for each in given.assignment.topic_partitions] == [1]
    assert house.consumer_group.state is ConsumerState.STABLE


def test_whoever_waits_to_join_is_told_to_join_what_the_group_became(house: House) -> None:
    house.stable_classic({"t": [0, 1, 2, 3]})
    waiting = house.join(version=3)
    assert not waiting.is_done

    house.beat("new")

    response = waiting.result()
    assert response.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert response.member_id in house.consumer_group.members
    assert house.join(response.member_id).result().generation_id == house.consumer_group.epoch


def test_whoever_waits_to_sync_is_told_so_too(house: House) -> None:
    (a,) = house.stable_classic({"t": [0]})
    other = house.join(version=3)
    house.join(a)
    b = other.result().member_id
    waiting = house.sync(b, 2)
    assert not waiting.is_done

    house.beat("new")

    assert code_of(waiting) == ErrorCode.REBALANCE_IN_PROGRESS


def test_nothing_of_the_classic_group_goes_on(house: House) -> None:
    (a,) = house.stable_classic({"t": [0]})
    house.beat("new")
    old_timers = [key for key in house.groups.timers._tasks if "classic" in str(key)]
    assert old_timers == []
    assert house.heartbeat(a, 1) == ErrorCode.REBALANCE_IN_PROGRESS


def test_what_members_said_they_have_counts_if_a_rebalance_was_broken_off(house: House) -> None:
    """A cooperative member consumes on while its group rebalances; the assignment of a generation
    that never got one is empty."""
    terms = {"protocols": ("cooperative-sticky",)}
    a, b = house.stable_classic({"t": [0, 1]}, {"t": [2, 3]}, **terms)
    first = house.join(a, owned={"t": [0, 1]}, generation=2, **terms)
    second = house.join(b, owned={"t": [1, 2, 3]}, generation=1, **terms)
    assert first.result().generation_id == second.result().generation_id
    third = house.join(version=3, **terms)  # breaks it off before anybody was assigned anything
    assert not third.is_done
    assert all(not each.assignment for each in house.classic_group.members.values())

    house.beat("new")

    group, t = house.consumer_group, house.topic_id("t")
    assert set(group.members[a].assigned[t]) == {0, 1}
    assert set(group.members[b].assigned[t]) == {2, 3}  # who said so later has it


def test_of_two_who_were_assigned_a_partition_one_has_it(house: House) -> None:
    house.stable_classic({"t": [0, 1]}, {"t": [1, 2]})
    house.beat("new")
    owned = [
        partition
        for member in house.consumer_group.members.values()
        for partition in member.assigned.get(house.topic_id("t"), ())
    ]
    assert sorted(owned) == sorted(set(owned))


def test_partitions_and_topics_that_are_not_there_are_left_out(house: House) -> None:
    (a,) = house.stable_classic({"t": [0, 77], "nowhere": [1]}, topics=("t", "nowhere"))
    house.beat("new")
    assert set(house.consumer_group.members[a].assigned[house.topic_id("t")]) == {0}


def test_an_empty_classic_group_gives_way_whatever_it_was(house: House) -> None:
    (a,) = house.stable_classic({"t": [0]}, protocol_type="connect", metadata=b"?")
    house.leave((a, None))
    assert house.classic_group.state is ClassicState.EMPTY

    house.beat("new")

    assert isinstance(house.group, ConsumerGroup)
    assert set(house.consumer_group.members) == {"new"}
    house.lead_again()
    assert set(house.consumer_group.members) == {"new"}


@pytest.mark.parametrize(
    ("terms", "given", "reason"),
    [
        ({"protocol_type": "connect"}, b"", "does not use the consumer embedded protocol"),
        ({"metadata": b"\xff"}, b"", "the embedded consumer protocol is malformed"),
        ({"metadata": b"\xff\xff\0"}, b"", "the embedded consumer protocol is malformed"),
        ({}, b"\0", "the embedded consumer protocol is malformed"),
        ({}, assignment({"t": [0]}, user_data=b"x"), "an unsupported custom assignor is in use"),
    ],
)
def test_a_group_that_is_not_what_we_know_stays_classic(
    house: House, terms: dict[str, object], given: bytes, reason: str
) -> None:
    (a,) = house.stable_classic({}, **terms)
    house.classic_group.members[a].assignment = given

    with pytest.raises(KafkaError, match=reason) as refusal:
        house.beat("new")

    assert refusal.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(house.group, ClassicGroup)
    assert house.heartbeat(a, 1) == ErrorCode.NONE


@pytest.mark.parametrize("policy", ["disabled", "DOWNGRADE"])
def test_a_policy_may_keep_groups_classic(policy: str) -> None:
    house = House(group_consumer_migration_policy=policy)
    house.stable_classic({"t": [0]})
    with pytest.raises(KafkaError, match="online upgrade is disabled"):
        house.beat("new")


def test_a_group_that_is_too_large_for_a_consumer_group_stays_classic() -> None:
    house = House(group_consumer_max_size=1)
    house.stable_classic({"t": [0]}, {"t": [1]})
    with pytest.raises(KafkaError, match="exceeds the consumer group maximum size"):
        house.beat("new")


def test_a_group_goes_on_if_its_move_cannot_be_written(house: House) -> None:
    (a,) = house.stable_classic({"t": [0]})
    waiting = house.join(version=3)
    house.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

    with pytest.raises(KafkaError):
        house.beat("new")

    house.world.log.refusal = None
    assert isinstance(house.group, ClassicGroup)
    assert not waiting.is_done
    assert house.join(a).result().generation_id == 2
    assert waiting.result().generation_id == 2
    assert house.beat("new").member_epoch == 3


def test_a_member_may_change_to_the_other_protocol_under_its_own_id(house: House) -> None:
    (a,) = house.stable_classic({"t": [0, 1, 2, 3]})
    joined = house.beat(a)
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]
    assert not house.consumer_group.members[a].uses_classic_protocol
    assert house.heartbeat(a, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def stable_static(house: House) -> None:
    """A classic group of one static member "i", which has all of "t"."""
    joining = house.join(instance="i")
    house.advance(0)
    joined = joining.result()
    given = {joined.member_id: assignment({"t": [0, 1, 2, 3]})}
    house.sync(joined.member_id, joined.generation_id, given, instance="i").result()


def test_a_static_member_may_change_too_and_nothing_is_assigned_anew(house: House) -> None:
    stable_static(house)
    joined = house.beat("new", instance="i")
    assert joined.member_epoch == house.consumer_group.epoch == 1
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3]


def test_it_is_if_the_group_was_about_to_rebalance(house: House) -> None:
    stable_static(house)
    joining = house.join(instance="j")
    assert house.classic_group.state is ClassicState.PREPARING_REBALANCE
    house.beat("new", instance="i")
    assert code_of(joining) == ErrorCode.REBALANCE_IN_PROGRESS
    assert house.consumer_group.epoch == 2
    assert set(house.consumer_group.targets) == {"new", *house.consumer_group.members}


def test_it_is_if_topics_have_grown(house: House) -> None:
    stable_static(house)
    house.world.create_topic("t", 5)
    joined = house.beat("new", instance="i")
    assert joined.assignment is not None
    assert joined.assignment.topic_partitions[0].partitions == [0, 1, 2, 3, 4]


def test_silent_classic_members_are_given_up(house: House) -> None:
    (a,) = house.stable_classic({"t": [0]})
    epoch = house.beat("new").member_epoch
    house.advance(9_999)
    assert a in house.consumer_group.members
    house.advance(1)
    assert set(house.consumer_group.members) == {"new"}
    assert house.beat("new", epoch).member_epoch == epoch + 1
    assert GROUP in house.groups.by_id
