"""A consumer group becomes classic again as the last member of the consumer protocol goes."""

import pytest
from tests.coordinator.migration.house import REBALANCE_MS, House, code_of, read_assignment

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ConsumerState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages import group_records as wire


@pytest.fixture
def house() -> House:
    return House()


def mixed(house: House, *ids: str, instance: str | None = None, **terms: object) -> int:
    """A stable consumer group of "new", who speaks the consumer protocol, and of classic members
    with these ids; the epoch of all."""
    epoch = house.beat("new", instance=instance).member_epoch
    for member_id in ids:
        house.join(member_id, **terms)  # type: ignore[arg-type]
    for _ in range(4):
        owned = house.consumer_group.members["new"].assigned
        epoch = house.beat("new", epoch, owned=owned, instance=instance).member_epoch
        for member_id in ids:
            member = house.consumer_group.members[member_id]
            held = {"t": member.assigned.get(house.topic_id("t"), {})}
            joined = house.join(member_id, owned=held, **terms).result()  # type: ignore[arg-type]
            house.sync(member_id, joined.generation_id, protocol=joined.protocol_name).result()
    assert house.consumer_group.state is ConsumerState.STABLE
    return epoch


def assigned_to(house: House, member_id: str) -> set[int]:
    return read_assignment(house.classic_group.members[member_id].assignment)["t"]


def test_the_classic_group_has_the_assignment_and_rebalances(house: House) -> None:
    epoch = mixed(house, "a", "b")
    targets = {each: house.consumer_group.target(each) for each in ("a", "b")}

    house.beat("new", -1)

    group = house.classic_group
    assert group.state is ClassicState.PREPARING_REBALANCE
    assert group.generation == epoch
    assert set(group.members) == {"a", "b"}
    for each, target in targets.items():
        assert assigned_to(house, each) == target[house.topic_id("t")]
        assert house.heartbeat(each, epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    joins = [house.join(each) for each in ("a", "b")]
    assert {each.result().generation_id for each in joins} == {epoch + 1}


def test_the_records_are_tombstones_and_the_classic_group(house: House) -> None:
    epoch = mixed(house, "a", protocols=("range", "sticky"))
    before = len(house.written)

    house.beat("new", -1)

    *tombstones, last = house.written[before:]
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


def test_members_offer_all_their_protocols_again(house: House) -> None:
    mixed(house, "a", protocols=("range", "sticky"))
    house.beat("new", -1)
    newcomer = house.join(protocols=("sticky",), version=3)
    assert not newcomer.is_done  # not refused: it waits for "a", which offers that as well
    house.join("a", protocols=("range", "sticky"))
    assert newcomer.result().protocol_name == "sticky"


def test_fencing_the_last_one_does_the_same(house: House) -> None:
    epoch = mixed(house, "a")
    for _ in range(15):
        house.advance(3_000)
        if isinstance(house.group, ConsumerGroup):
            assert house.heartbeat("a", epoch) == ErrorCode.NONE
    assert isinstance(house.group, ClassicGroup)
    assert house.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS


def test_so_does_an_administrator_who_removes_it(house: House) -> None:
    mixed(house, "a", instance="i")
    assert house.leave(("", "i")) == [ErrorCode.NONE]
    assert isinstance(house.group, ClassicGroup)


def test_sessions_of_the_classic_members_go_on(house: House) -> None:
    mixed(house, "a")
    house.beat("new", -1)
    house.advance(10_000)
    assert house.classic_group.state is ClassicState.EMPTY


def test_members_that_do_not_join_the_rebalance_are_given_up(house: House) -> None:
    epoch = mixed(house, "a", "b")
    house.beat("new", -1)
    waiting = house.join("a")
    for _ in range(REBALANCE_MS // 5_000):
        house.advance(5_000)
        house.heartbeat("b", epoch)
    assert waiting.result().generation_id == epoch + 1
    assert set(house.classic_group.members) == {"a"}


def test_the_last_to_leave_leaves_a_consumer_group_empty(house: House) -> None:
    mixed(house)
    house.beat("new", -1)
    assert house.consumer_group.state is ConsumerState.EMPTY


def test_while_others_speak_the_consumer_protocol_nothing_moves(house: House) -> None:
    mixed(house, "a")
    house.beat("other")
    house.beat("new", -1)
    assert set(house.consumer_group.members) == {"a", "other"}


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_policy_may_keep_it_a_consumer_group_and_it_still_assigns(policy: str) -> None:
    house = House(group_consumer_migration_policy="bidirectional")
    mixed(house, "a", "b")
    house.world.settings = house.world.settings.__class__(
        group_consumer_migration_policy=policy, group_consumer_assignment_interval_ms=0
    )
    house.lead_again()
    house.beat("new", -1)
    assert isinstance(house.group, ConsumerGroup)
    if policy == "upgrade":
        epoch = house.consumer_group.members["a"].member_epoch
        assert house.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS
        shares = []
        for each in ("a", "b"):
            joined = house.join(each).result()
            synced = house.sync(each, joined.generation_id).result()
            shares.append(read_assignment(synced.assignment)["t"])
        assert set.union(*shares) == {0, 1, 2, 3}


def test_a_group_too_large_to_be_classic_stays(house: House) -> None:
    house = House(group_max_size=1)
    mixed(house, "a", "b")
    house.beat("new", -1)
    assert isinstance(house.group, ConsumerGroup)


def test_the_group_is_the_same_to_whoever_loads_it(house: House) -> None:
    epoch = mixed(house, "a", "b")
    house.beat("new", -1)
    given = {each: assigned_to(house, each) for each in ("a", "b")}

    house.lead_again()

    group = house.classic_group
    assert group.state is ClassicState.PREPARING_REBALANCE  # which it was about to do
    assert group.generation == epoch
    assert {each: assigned_to(house, each) for each in ("a", "b")} == given


def test_whoever_loads_a_group_that_has_rebalanced_since_leaves_it_alone(house: House) -> None:
    epoch = mixed(house, "a")
    house.beat("new", -1)
    joined = house.join("a").result()
    assert joined.leader == "a"
    house.sync("a", epoch + 1).result()

    house.lead_again()

    assert house.classic_group.state is ClassicState.STABLE
    assert house.heartbeat("a", epoch + 1) == ErrorCode.NONE


def test_a_group_goes_on_if_its_move_cannot_be_written(house: House) -> None:
    epoch = mixed(house, "a")
    house.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "too few")

    with pytest.raises(KafkaError):
        house.beat("new", -1)

    house.world.log.refusal = None
    house.advance(0)
    assert isinstance(house.group, ConsumerGroup)
    assert house.heartbeat("a", epoch) == ErrorCode.NONE
    assert house.beat("new", epoch).error_code == 0


def test_no_topic_is_remembered_for_a_group_that_moved(house: House) -> None:
    mixed(house, "a")
    assert house.groups.subscriptions.of("t") == {"g"}
    house.beat("new", -1)
    assert house.groups.subscriptions.of("t") == set()


# Static members that come back by the classic protocol


def test_a_static_member_takes_over_without_a_rebalance(house: House) -> None:
    epoch = mixed(house, "a", instance="i")
    target = house.consumer_group.target("new")[house.topic_id("t")]
    house.beat("new", -2, instance="i")

    joined = house.join(instance="i").result()

    group = house.classic_group
    assert group.state is ClassicState.STABLE
    assert joined.generation_id == group.generation == epoch
    assert joined.member_id not in ("", "new")
    assert group.static_members == {"i": joined.member_id}
    synced = house.sync(joined.member_id, epoch, instance="i").result()
    assert read_assignment(synced.assignment)["t"] == target
    assert house.heartbeat("a", epoch) == ErrorCode.NONE
    assert house.heartbeat(joined.member_id, epoch, "i") == ErrorCode.NONE


def test_it_takes_over_from_one_that_never_said_goodbye(house: House) -> None:
    mixed(house, instance="i")
    joined = house.join(instance="i").result()
    assert house.classic_group.state is ClassicState.STABLE
    assert assigned_to(house, joined.member_id) == {0, 1, 2, 3}


def test_with_another_subscription_it_rebalances(house: House) -> None:
    house.world.create_topic("u", 2)
    epoch = mixed(house, "a", instance="i")
    joined = house.join(instance="i", topics=("t", "u")).result()
    assert house.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert house.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = house.sync(joined.member_id, joined.generation_id, instance="i")
    assert code_of(answer) == ErrorCode.REBALANCE_IN_PROGRESS


def test_it_rebalances_if_topics_have_grown(house: House) -> None:
    epoch = mixed(house, "a", instance="i")
    house.world.create_topic("t", 5)
    house.join(instance="i")
    assert house.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert house.heartbeat("a", epoch) == ErrorCode.REBALANCE_IN_PROGRESS


def test_it_rebalances_if_others_were_not_done_with_the_last_one(house: House) -> None:
    epoch = mixed(house, "a", instance="i")
    house.join("b")  # joins, and nobody has given it anything yet
    house.join(instance="i")
    assert house.classic_group.state is ClassicState.PREPARING_REBALANCE
    assert set(house.classic_group.members) > {"a", "b"}
    assert house.classic_group.generation == epoch + 1


def test_a_group_that_moved_goes_on_before_that_is_committed_and_does_so_once(house: House) -> None:
    mixed(house, "a")
    house.world.log.committing = False
    left = house.ask(house.leaving("new"))
    assert not left.is_done
    assert house.classic_group.state is ClassicState.PREPARING_REBALANCE
    joined = house.join("a")
    assert house.classic_group.state is ClassicState.COMPLETING_REBALANCE
    house.world.log.committing = True
    house.world.log.commit()
    assert left.result().error_code == 0
    assert joined.result().generation_id == house.classic_group.generation
    assert house.classic_group.state is ClassicState.COMPLETING_REBALANCE
