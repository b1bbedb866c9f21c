"""Subscriptions by regular expression: resolved behind the heartbeat, and now and then again."""

import pytest
from tests.coordinator.consumer.scene import INTERVAL_MS, Member, Scene

from barnabas.coordinator.groups.consumer.regexes import MIN_INTERVAL_MS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import ConsumerGroupRegularExpressionKey


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.topic("foo-a", 2)
    scene.topic("bar", 2)
    return scene


def subscribed(scene: Scene, member_id: str, pattern: str) -> Member:
    """A member that has joined by the pattern, and what is due at once has happened."""
    member = Member(scene, member_id)
    member.join(subscribed_topic_regex=pattern)
    scene.advance(0)
    return member


def topics_of(member: Member) -> set[bytes]:
    return {topic_id for topic_id, _ in member.owned}


def patterns_written(scene: Scene) -> list[str]:
    return [
        record.key.regular_expression
        for record in scene.written
        if isinstance(record.key, ConsumerGroupRegularExpressionKey)
    ]


def test_the_next_heartbeat_tells_what_was_found(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    assert (member.epoch, member.owned) == (1, set())
    resolved = scene.group.resolved_regexes["foo.*"]
    assert resolved.topics == {"foo-a"}
    assert resolved.version == scene.world.image.offset
    assert scene.group.epoch == 2
    member.beat()
    assert topics_of(member) == {scene.topic("foo-a", 2)}
    assert scene.group.is_subscribed_to("foo-a")


def test_a_pattern_that_is_known_needs_no_resolving(scene: Scene) -> None:
    subscribed(scene, "m", "foo.*").beat()
    subscribed(scene, "n", "foo.*")
    assert patterns_written(scene) == ["foo.*"]
    assert scene.group.epoch == 3


def test_names_and_a_pattern_add_up(scene: Scene) -> None:
    member = Member(scene, "m")
    member.join("bar", subscribed_topic_regex="foo.*")
    scene.advance(INTERVAL_MS)
    member.beat()
    assert topics_of(member) == {scene.topic("foo-a", 2), scene.topic("bar", 2)}


def test_a_pattern_of_internal_names_and_none_at_all_is_no_error(scene: Scene) -> None:
    member = subscribed(scene, "m", "nothing-.*")
    assert scene.group.resolved_regexes["nothing-.*"].topics == frozenset()
    assert scene.group.epoch == 1
    assert member.beat().member_epoch == 1


def test_a_topic_that_is_created_is_found_after_a_while(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    member.beat()
    created = scene.topic("foo-b", 1)
    scene.advance(MIN_INTERVAL_MS)
    member.beat()
    scene.advance(0)
    assert scene.group.resolved_regexes["foo.*"].topics == {"foo-a"}
    scene.advance(1)
    member.beat()
    scene.advance(0)
    member.beat()
    assert created in topics_of(member)


def test_a_clock_that_is_set_back_does_not_hide_new_topics(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    member.beat()
    created = scene.topic("foo-b", 1)
    scene.world.clock.now_ms -= 3_600_000
    member.beat()
    scene.advance(0)
    member.beat()
    assert created in topics_of(member)


def test_all_are_resolved_again_now_and_then(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    for _ in range(600_000 // 40_000 + 1):
        scene.advance(40_000)
        member.beat()
        scene.advance(0)
    assert patterns_written(scene) == ["foo.*", "foo.*"]
    assert scene.group.epoch == 2


def test_a_new_coordinator_looks_for_topics_that_came_meanwhile(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    member.beat()
    scene.world.runtime.close()
    scene.topic("foo-b", 1)
    scene.lead()
    scene.advance(MIN_INTERVAL_MS + 1)
    member.beat()
    scene.advance(0)
    assert scene.group.resolved_regexes["foo.*"].topics == {"foo-a", "foo-b"}


def test_a_pattern_that_nobody_uses_any_more_is_taken_back(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    member.beat()
    scene.advance(INTERVAL_MS)
    member.beat(subscribed_topic_regex="", subscribed_topic_names=["bar"])
    assert not scene.group.resolved_regexes
    assert scene.group.subscribed_topics == {"bar": 1}
    member.beat()
    member.beat()
    assert topics_of(member) == {scene.topic("bar", 2)}


def test_a_pattern_goes_with_its_last_member(scene: Scene) -> None:
    subscribed(scene, "m", "foo.*")
    subscribed(scene, "n", "foo.*")
    scene.heartbeat("m", -1)
    assert "foo.*" in scene.group.resolved_regexes
    scene.heartbeat("n", -1)
    assert not scene.group.resolved_regexes
    assert not scene.groups.subscriptions.of("foo-a")


def test_another_pattern_takes_what_it_does_not_stand_for_at_once(scene: Scene) -> None:
    member = subscribed(scene, "m", "foo.*")
    member.beat()
    told = member.beat(subscribed_topic_regex="bar")
    assert (told.member_epoch, member.owned) == (2, set())


def test_who_leaves_before_it_is_resolved_leaves_nothing(scene: Scene) -> None:
    member = Member(scene, "m")
    member.join(subscribed_topic_regex="foo.*")
    scene.heartbeat("m", -1)
    scene.advance(0)
    assert not scene.group.resolved_regexes


def test_what_was_found_and_could_not_be_written_is_written_later(scene: Scene) -> None:
    member = Member(scene, "m")
    member.join(subscribed_topic_regex="foo.*")
    scene.world.log.refusal = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    scene.advance(0)
    assert not scene.group.resolved_regexes
    scene.world.log.refusal = None
    scene.advance(INTERVAL_MS)
    assert scene.group.resolved_regexes["foo.*"].topics == {"foo-a"}
