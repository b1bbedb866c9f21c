"""Subscriptions by regular expression: resolved behind the heartbeat, and now and then again."""

import pytest
from tests.coordinator.consumer.harness import INTERVAL_MS, ConsumerHarness, Member

from barnabas.coordinator.groups.consumer.regexes import MIN_INTERVAL_MS
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_records import ConsumerGroupRegularExpressionKey


@pytest.fixture
def harness() -> ConsumerHarness:
    harness = ConsumerHarness()
    harness.topic("foo-a", 2)
    harness.topic("bar", 2)
    return harness


def subscribed(harness: ConsumerHarness, member_id: str, pattern: str) -> Member:
    """A member that has joined by the pattern, and what is due at once has happened."""
    member = Member(harness, member_id)
    member.join(subscribed_topic_regex=pattern)
    harness.advance(0)
    return member


def topics_of(member: Member) -> set[bytes]:
    return {topic_id for topic_id, _ in member.owned}


def patterns_written(harness: ConsumerHarness) -> list[str]:
    return [
        record.key.regular_expression
        for record in harness.written
        if isinstance(record.key, ConsumerGroupRegularExpressionKey)
    ]


def test_the_next_heartbeat_returns_the_matching_topics(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    assert (member.epoch, member.owned) == (1, set())
    resolved = harness.group.resolved_regexes["foo.*"]
    assert resolved.topics == {"foo-a"}
    assert resolved.version == harness.environment.image.offset
    assert harness.group.epoch == 2
    member.heartbeat()
    assert topics_of(member) == {harness.topic("foo-a", 2)}
    assert harness.group.is_subscribed_to("foo-a")


def test_a_resolved_pattern_is_not_resolved_again(harness: ConsumerHarness) -> None:
    subscribed(harness, "m", "foo.*").heartbeat()
    subscribed(harness, "n", "foo.*")
    assert patterns_written(harness) == ["foo.*"]
    assert harness.group.epoch == 3


def test_names_and_a_pattern_are_combined(harness: ConsumerHarness) -> None:
    member = Member(harness, "m")
    member.join("bar", subscribed_topic_regex="foo.*")
    harness.advance(INTERVAL_MS)
    member.heartbeat()
    assert topics_of(member) == {harness.topic("foo-a", 2), harness.topic("bar", 2)}


def test_a_pattern_of_internal_names_and_none_at_all_is_no_error(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "nothing-.*")
    assert harness.group.resolved_regexes["nothing-.*"].topics == frozenset()
    assert harness.group.epoch == 1
    assert member.heartbeat().member_epoch == 1


def test_a_pattern_matches_a_created_topic_after_the_interval(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    member.heartbeat()
    created = harness.topic("foo-b", 1)
    harness.advance(MIN_INTERVAL_MS)
    member.heartbeat()
    harness.advance(0)
    assert harness.group.resolved_regexes["foo.*"].topics == {"foo-a"}
    harness.advance(1)
    member.heartbeat()
    harness.advance(0)
    member.heartbeat()
    assert created in topics_of(member)


def test_a_clock_that_is_set_back_does_not_hide_new_topics(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    member.heartbeat()
    created = harness.topic("foo-b", 1)
    harness.environment.clock.now_ms -= 3_600_000
    member.heartbeat()
    harness.advance(0)
    member.heartbeat()
    assert created in topics_of(member)


def test_all_patterns_are_resolved_again_periodically(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    for _ in range(600_000 // 40_000 + 1):
        harness.advance(40_000)
        member.heartbeat()
        harness.advance(0)
    assert patterns_written(harness) == ["foo.*", "foo.*"]
    assert harness.group.epoch == 2


def test_a_new_coordinator_resolves_patterns_with_topics_created_meanwhile(
    harness: ConsumerHarness,
) -> None:
    member = subscribed(harness, "m", "foo.*")
    member.heartbeat()
    harness.environment.runtime.close()
    harness.topic("foo-b", 1)
    harness.lead()
    harness.advance(MIN_INTERVAL_MS + 1)
    member.heartbeat()
    harness.advance(0)
    assert harness.group.resolved_regexes["foo.*"].topics == {"foo-a", "foo-b"}


def test_an_unused_pattern_is_deleted(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    member.heartbeat()
    harness.advance(INTERVAL_MS)
    member.heartbeat(subscribed_topic_regex="", subscribed_topic_names=["bar"])
    assert not harness.group.resolved_regexes
    assert harness.group.subscribed_topics == {"bar": 1}
    member.heartbeat()
    member.heartbeat()
    assert topics_of(member) == {harness.topic("bar", 2)}


def test_a_pattern_is_deleted_with_its_last_member(harness: ConsumerHarness) -> None:
    subscribed(harness, "m", "foo.*")
    subscribed(harness, "n", "foo.*")
    harness.heartbeat("m", -1)
    assert "foo.*" in harness.group.resolved_regexes
    harness.heartbeat("n", -1)
    assert not harness.group.resolved_regexes
    assert not harness.groups.subscriptions.of("foo-a")


def test_another_pattern_revokes_topics_that_do_not_match_at_once(harness: ConsumerHarness) -> None:
    member = subscribed(harness, "m", "foo.*")
    member.heartbeat()
    response = member.heartbeat(subscribed_topic_regex="bar")
    assert (response.member_epoch, member.owned) == (2, set())


def test_a_pattern_of_a_member_that_left_is_not_written(harness: ConsumerHarness) -> None:
    member = Member(harness, "m")
    member.join(subscribed_topic_regex="foo.*")
    harness.heartbeat("m", -1)
    harness.advance(0)
    assert not harness.group.resolved_regexes


def test_matching_topics_that_could_not_be_written_are_written_later(
    harness: ConsumerHarness,
) -> None:
    member = Member(harness, "m")
    member.join(subscribed_topic_regex="foo.*")
    harness.environment.log.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "")
    harness.advance(0)
    assert not harness.group.resolved_regexes
    harness.environment.log.append_error = None
    harness.advance(INTERVAL_MS)
    assert harness.group.resolved_regexes["foo.*"].topics == {"foo-a"}


def test_topics_that_the_client_may_not_describe_do_not_match(harness: ConsumerHarness) -> None:
    harness.topic("foo-hidden", 2)
    harness.environment.may_describe = lambda topic: topic != "foo-hidden"
    member = subscribed(harness, "m", "foo.*")
    assert harness.group.resolved_regexes["foo.*"].topics == {"foo-a"}
    member.heartbeat()
    assert topics_of(member) == {harness.topic("foo-a", 2)}
