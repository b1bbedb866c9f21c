"""Members join, share, lose answers and leave: what a heartbeat is told. The numbers are those
that the real Kafka 4.3.1 gives in the same conversations."""

from typing import Any

import pytest
from tests.coordinator.consumer.scene import INTERVAL_MS, Member, Scene, assigned, report

from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import TopicPartitions


@pytest.fixture
def scene() -> Scene:
    return Scene()


JOIN: dict[str, Any] = {
    "rebalance_timeout_ms": 30_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
SOME = [TopicPartitions(topic_id=bytes(15) + b"\1", partitions=[0])]


@pytest.mark.parametrize(
    ("epoch", "changed"),
    [
        (0, {"group": ""}),
        (0, {"group": " "}),
        (0, {"member_id": ""}),
        (0, {"member_id": " "}),
        (0, {"instance_id": ""}),
        (0, {"rack_id": ""}),
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"topic_partitions": None}),
        (0, {"topic_partitions": SOME}),
        (0, {"subscribed_topic_names": None}),
        (1, {"member_id": "", "version": 0}),
        (-1, {"member_id": "", "version": 0}),
        (-2, {}),
        (-3, {}),
    ],
)
def test_a_heartbeat_that_makes_no_sense_is_refused(
    scene: Scene, epoch: int, changed: dict[str, Any]
) -> None:
    fields = {"member_id": "m", **JOIN, **changed}
    assert scene.code(fields.pop("member_id"), epoch, **fields) == ErrorCode.INVALID_REQUEST


def test_an_assignor_that_is_not_offered_is_refused(scene: Scene) -> None:
    code = scene.code("m", 0, **JOIN, server_assignor="sticky")
    assert code == ErrorCode.UNSUPPORTED_ASSIGNOR


@pytest.mark.parametrize("wanted", [None, "range"])
def test_assignors_may_be_set_by_the_names_of_kafkas_classes(wanted: str | None) -> None:
    classes = "org.apache.kafka.coordinator.group.assignor."
    listed = f"{classes}RangeAssignor, {classes}UniformAssignor"
    scene = Scene(group_consumer_assignors=listed)
    topic_id = scene.topic("t", 2)
    told = scene.heartbeat("m", 0, **JOIN, server_assignor=wanted)
    assert assigned(told) == {(topic_id, 0), (topic_id, 1)}


def test_a_regular_expression_that_is_none_is_refused_and_nothing_written(scene: Scene) -> None:
    code = scene.code("m", 0, **JOIN, subscribed_topic_regex="[")
    assert code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not scene.written


def test_before_v1_the_coordinator_makes_up_the_member_id(scene: Scene) -> None:
    told = scene.heartbeat("", 0, **JOIN, version=0)
    assert told.member_id
    assert len(told.member_id) == 22
    assert scene.code(told.member_id, told.member_epoch, version=0) == ErrorCode.NONE


def test_a_group_that_is_not_there_can_only_be_joined(scene: Scene) -> None:
    assert scene.code("m", 3) == ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.code("m", -1) == ErrorCode.GROUP_ID_NOT_FOUND
    assert scene.code("m", 0, **JOIN) == ErrorCode.NONE


def test_the_first_member_gets_everything_at_once(scene: Scene) -> None:
    topic_id = scene.topic("t", 4)
    told = scene.join("m", "t")
    assert (told.member_id, told.member_epoch, told.heartbeat_interval_ms) == ("m", 2, 5_000)
    assert assigned(told) == {(topic_id, index) for index in range(4)}
    assert scene.group.state_name == "Stable"


def test_an_assignment_is_told_when_it_changes_or_is_asked_for(scene: Scene) -> None:
    topic_id = scene.topic("t", 1)
    scene.join("m", "t")
    assert scene.heartbeat("m", 2).assignment is None
    assert scene.heartbeat("m", 2, topic_partitions=report([(topic_id, 0)])).assignment is None
    full = {**JOIN, "topic_partitions": report([(topic_id, 0)])}
    assert assigned(scene.heartbeat("m", 2, **full)) == {(topic_id, 0)}
    by_regex = {**full, "subscribed_topic_names": None, "subscribed_topic_regex": ""}
    assert assigned(scene.heartbeat("m", 2, **by_regex)) == {(topic_id, 0)}


def test_a_heartbeat_that_says_nothing_new_writes_nothing(scene: Scene) -> None:
    epoch = scene.stable("m")
    before = len(scene.written)
    scene.heartbeat("m", epoch)
    scene.heartbeat("m", epoch, **{**JOIN, "topic_partitions": []})
    assert len(scene.written) == before


def test_a_second_member_waits_until_the_first_has_revoked(scene: Scene) -> None:
    topic_id = scene.topic("t", 4)
    scene.join("a", "t")
    assert assigned(scene.join("b", "t")) == set()
    assert scene.group.state_name == "Assigning"
    scene.advance(INTERVAL_MS)

    kept = assigned(scene.heartbeat("a", 2))
    assert kept == {(topic_id, 0), (topic_id, 1)}
    assert scene.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    told = scene.heartbeat("b", 2)
    assert (told.member_epoch, told.assignment) == (3, None)
    assert scene.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    assert scene.group.state_name == "Reconciling"

    everything = [(topic_id, index) for index in range(4)]
    assert scene.heartbeat("a", 2, topic_partitions=report(everything)).member_epoch == 2
    assert scene.heartbeat("a", 2, topic_partitions=report(kept)).member_epoch == 3
    assert assigned(scene.heartbeat("b", 3)) == {(topic_id, 2), (topic_id, 3)}
    assert scene.group.state_name == "Stable"


def test_assignments_keep_an_interval_between_them(scene: Scene) -> None:
    scene.topic("t", 4)
    scene.join("a", "t")
    scene.join("b", "t")
    scene.advance(INTERVAL_MS - 1)
    assert scene.heartbeat("b", 2).member_epoch == 2
    scene.advance(1)
    assert scene.heartbeat("b", 2).member_epoch == 3
    assert scene.group.assignment_timestamp_ms == scene.world.clock.now_ms


def test_a_clock_that_is_set_back_does_not_put_off_the_next_assignment(scene: Scene) -> None:
    scene.topic("t", 4)
    scene.join("a", "t")
    scene.world.clock.now_ms -= 3_600_000
    assert scene.join("b", "t").member_epoch == 3


def test_the_interval_between_assignments_is_the_groups_own(scene: Scene) -> None:
    scene.world.settings.groups["g"] = {"consumer.assignment.interval.ms": 0}
    scene.topic("t", 4)
    scene.join("a", "t")
    assert scene.join("b", "t").member_epoch == 3


def test_a_member_of_a_wrong_epoch_is_fenced(scene: Scene) -> None:
    epoch = scene.stable("m")
    assert scene.code("m", epoch + 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.code("m", epoch - 1) == ErrorCode.FENCED_MEMBER_EPOCH
    assert scene.code("x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_lost_the_answer_may_come_with_its_last_epoch(scene: Scene) -> None:
    topic_id = scene.topic("t", 2)
    member = Member(scene, "m")
    member.join("t")
    scene.topic("t", 3)
    scene.advance(INTERVAL_MS)
    lost = scene.heartbeat("m", member.epoch)
    assert lost.member_epoch == member.epoch + 1

    assert scene.code("m", member.epoch) == ErrorCode.FENCED_MEMBER_EPOCH
    stranger = report([(topic_id, 7)])
    assert scene.code("m", member.epoch, topic_partitions=stranger) == ErrorCode.FENCED_MEMBER_EPOCH
    assert member.beat().member_epoch == lost.member_epoch


def test_a_member_that_joins_again_keeps_its_part(scene: Scene) -> None:
    epoch = scene.stable("m")
    before = scene.group.members["m"].assigned
    told = scene.join("m", "t")
    assert told.member_epoch == epoch
    assert scene.group.members["m"].assigned == before


def test_another_subscription_moves_the_group_epoch_on(scene: Scene) -> None:
    epoch = scene.stable("m")
    assert scene.heartbeat("m", epoch, subscribed_topic_names=["t", "u"]).member_epoch == epoch + 1
    scene.heartbeat("m", epoch + 1, subscribed_topic_names=["u", "t"])
    assert scene.group.epoch == epoch + 1


def test_what_a_member_does_not_want_any_more_is_taken_before_the_next_assignment(
    scene: Scene,
) -> None:
    scene.topic("t", 1)
    scene.topic("u", 1)
    epoch = scene.join("m", "t").member_epoch
    told = scene.heartbeat("m", epoch, subscribed_topic_names=["u"])
    assert scene.group.epoch > scene.group.assignment_epoch
    assert (told.member_epoch, assigned(told)) == (epoch, set())
    assert scene.group.members["m"].state is MemberState.UNREVOKED_PARTITIONS


def test_a_change_that_is_not_of_the_subscription_is_written_without_a_new_epoch(
    scene: Scene,
) -> None:
    epoch = scene.stable("m")
    before = len(scene.written)
    scene.heartbeat("m", epoch, rack_id="r", rebalance_timeout_ms=7_000)
    assert len(scene.written) == before + 1
    assert scene.group.members["m"].rack_id == "r"
    assert scene.group.epoch == epoch


def test_most_members_choose_the_assignor(scene: Scene) -> None:
    scene.topic("t", 4)
    scene.join("a", "t", server_assignor="range")
    assert scene.group.preferred_assignor() == "range"
    scene.join("b", "t", server_assignor="uniform")
    assert scene.group.preferred_assignor() == "uniform"
    scene.heartbeat("b", scene.group.members["b"].member_epoch, server_assignor="range")
    assert scene.group.preferred_assignor() == "range"


def test_a_full_group_takes_nobody_but_its_members() -> None:
    scene = Scene(**{"group.consumer.max.size": 2})
    scene.stable("a", "b")
    assert scene.code("c", 0, **JOIN) == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert scene.code("a", 0, **JOIN) == ErrorCode.NONE


def test_who_leaves_is_gone_and_the_others_take_over(scene: Scene) -> None:
    epoch = scene.stable("a", "b")
    told = scene.heartbeat("a", -1)
    assert (told.member_id, told.member_epoch, told.assignment) == ("a", -1, None)
    assert scene.code("a", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert scene.code("a", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    scene.advance(INTERVAL_MS)
    assert len(assigned(scene.heartbeat("b", epoch))) == 4


def test_a_group_outlives_its_last_member(scene: Scene) -> None:
    epoch = scene.stable("m")
    scene.heartbeat("m", -1)
    assert scene.group.state_name == "Empty"
    assert scene.group.epoch == epoch + 1
    scene.advance(INTERVAL_MS)
    assert scene.join("n", "t").member_epoch == epoch + 2


def test_a_heartbeat_that_cannot_be_written_changes_nothing(scene: Scene) -> None:
    epoch = scene.stable("m")
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    assert scene.code("n", 0, **JOIN) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.code("m", -1) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    scene.world.log.refusal = None
    assert scene.group.members.keys() == {"m"}
    assert scene.code("m", epoch) == ErrorCode.NONE


def test_an_answer_waits_until_what_it_tells_is_committed(scene: Scene) -> None:
    scene.topic("t", 1)
    scene.world.log.committing = False
    answer = scene.ask("m", 0, **JOIN)
    assert not answer.is_done
    scene.world.log.commit()
    assert answer.result().member_epoch == 2
