"""What offsets, listings and deletion ask of a consumer group, and how it is described."""

import pytest
from tests.coordinator.consumer.scene import GROUP, INTERVAL_MS, Member, Scene

from barnabas.coordinator.groups import consumer
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Subscriptions
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.group import GroupType
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import ClassicMemberMetadata


@pytest.fixture
def scene() -> Scene:
    return Scene()


def commit(
    scene: Scene,
    member_id: str,
    epoch: int,
    partition: tuple[str, bytes, int] | None = None,
    *,
    transactional: bool = False,
    api_version: int = 9,
) -> ErrorCode:
    try:
        check = scene.group.check_commit(
            member_id, None, epoch, transactional=transactional, api_version=api_version
        )
        if check is not None and partition is not None:
            check(*partition)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def fetch(scene: Scene, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        scene.group.check_fetch(member_id, epoch)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE


def test_members_commit_with_their_epoch(scene: Scene) -> None:
    epoch = scene.stable("m")
    assert commit(scene, "m", epoch) == ErrorCode.NONE
    assert commit(scene, "m", epoch + 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(scene, "x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(scene, "", -1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert commit(scene, "m", epoch, api_version=8) == ErrorCode.UNSUPPORTED_VERSION
    assert commit(scene, "m", epoch, api_version=3, transactional=True) == ErrorCode.NONE


def test_an_older_epoch_may_commit_what_was_held_since_then(scene: Scene) -> None:
    topic_id = scene.topic("t", 2)
    member = Member(scene, "m")
    member.join("t")
    old = member.epoch
    scene.topic("t", 3)
    scene.advance(INTERVAL_MS)
    member.beat()
    assert member.epoch == old + 1
    assert commit(scene, "m", old, ("t", topic_id, 0)) == ErrorCode.NONE
    assert commit(scene, "m", old, ("t", topic_id, 2)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(scene, "m", old, ("t", topic_id, 9)) == ErrorCode.STALE_MEMBER_EPOCH
    assert commit(scene, "m", old - 1, ("t", topic_id, 0)) == ErrorCode.STALE_MEMBER_EPOCH


def test_what_is_being_revoked_may_still_be_committed(scene: Scene) -> None:
    topic_id = scene.topic("t", 2)
    scene.join("a", "t")
    scene.join("b", "t")
    scene.advance(INTERVAL_MS)
    scene.heartbeat("a", 2)
    (revoked,) = scene.group.members["a"].pending_revocation[topic_id]
    assert commit(scene, "a", 2, ("t", topic_id, revoked)) == ErrorCode.NONE


def test_a_classic_member_of_a_wrong_epoch_is_told_of_generations(scene: Scene) -> None:
    scene.stable("m")
    classic = ClassicMemberMetadata(session_timeout_ms=1, supported_protocols=[])
    scene.group.put_member(ConsumerMember("c", member_epoch=4, classic=classic))
    assert commit(scene, "c", 5) == ErrorCode.ILLEGAL_GENERATION
    assert commit(scene, "c", 3, ("t", bytes(16), 0)) == ErrorCode.ILLEGAL_GENERATION
    assert commit(scene, "c", 4, api_version=7) == ErrorCode.NONE
    assert fetch(scene, "c", 3) == ErrorCode.ILLEGAL_GENERATION


def test_anybody_may_commit_for_an_empty_group(scene: Scene) -> None:
    scene.stable("m")
    assert commit(scene, "", -1, transactional=True) == ErrorCode.NONE
    scene.heartbeat("m", -1)
    assert commit(scene, "", -1) == ErrorCode.NONE


def test_members_fetch_with_their_epoch_and_anybody_without(scene: Scene) -> None:
    epoch = scene.stable("m")
    assert fetch(scene, "m", epoch) == ErrorCode.NONE
    assert fetch(scene, "m", epoch - 1) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch(scene, "x", epoch) == ErrorCode.UNKNOWN_MEMBER_ID
    assert fetch(scene, None, -1) == ErrorCode.NONE


def test_only_an_empty_group_may_be_deleted(scene: Scene) -> None:
    scene.stable("m")
    with pytest.raises(KafkaError) as refusal:
        scene.group.check_delete()
    assert refusal.value.code == ErrorCode.NON_EMPTY_GROUP
    scene.heartbeat("m", -1)
    scene.group.check_delete()


def test_its_tombstones_leave_nothing_of_a_group(scene: Scene) -> None:
    scene.stable("m", "n")
    scene.heartbeat("m", 3, subscribed_topic_regex="t.*", topic_partitions=None)
    scene.advance(0)
    for record in scene.group.tombstones():
        scene.groups.replay(record, -1)
    assert not scene.groups.by_id
    assert not scene.groups.subscriptions.of("t")


def test_offsets_of_subscribed_topics_are_in_use(scene: Scene) -> None:
    scene.stable("m")
    assert scene.group.is_subscribed_to("t")
    assert not scene.group.is_subscribed_to("u")
    assert scene.group.retention_start_ms(17) == 17
    scene.group.check_delete_offsets()
    scene.heartbeat("m", -1)
    assert not scene.group.is_subscribed_to("t")


def test_what_listings_tell_of_it() -> None:
    group = ConsumerGroup("g", Subscriptions())
    assert (group.group_type, group.protocol_type) == (GroupType.CONSUMER, "consumer")
    assert (group.state_name, group.is_empty) == ("Empty", True)


def test_a_group_is_described_with_what_its_members_have_and_are_to_have(scene: Scene) -> None:
    topic_id = scene.topic("t", 4)
    scene.join("a", "t", rack_id="r", server_assignor="range")
    scene.join("b", "t")
    scene.advance(INTERVAL_MS)
    scene.heartbeat("a", 2)
    told = consumer.describe(GROUP, scene.groups, scene.world.coordinator._timer_context())
    assert (told.group_state, told.group_epoch, told.assignment_epoch) == ("Reconciling", 3, 3)
    assert told.assignor_name == "range"
    first, second = told.members
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


def test_a_topic_that_is_gone_has_no_name_to_be_described_by(scene: Scene) -> None:
    scene.stable("m")
    scene.world.delete_topic("t")
    (member,) = consumer.describe(
        GROUP, scene.groups, scene.world.coordinator._timer_context()
    ).members
    assert member.assignment.topic_partitions == []


def test_a_group_that_is_not_there_is_not_described(scene: Scene) -> None:
    with pytest.raises(KafkaError) as refusal:
        consumer.describe(GROUP, scene.groups, scene.world.coordinator._timer_context())
    assert refusal.value.code == ErrorCode.GROUP_ID_NOT_FOUND
