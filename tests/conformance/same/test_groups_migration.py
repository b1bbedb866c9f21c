"""Groups that move from the classic protocol to the consumer protocol, and back."""

from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import (
    Member,
    first_member,
    heartbeat,
    join,
    leave,
    subscription,
    sync,
)
from tests.conformance.same.offsets import commit, fetched
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest

pytestmark = pytest.mark.peer


def described(talk: Talk, group: str) -> None:
    talk.ask(DescribeGroupsRequest(groups=[group]))
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]))


def rejoined(talk: Talk, member: Member, **fields: Any) -> Member:
    """A classic member follows into the next generation of whatever the group is now."""
    answer = talk.ask(join(member.group, member.member_id, **fields))
    assert answer.error_code == 0, answer
    parts = {each.member_id: b"" for each in answer.members}
    talk.ask(sync(member.group, answer.generation_id, member.member_id, parts))
    return Member(member.group, member.member_id, answer.generation_id)


def test_a_classic_group_is_taken_over_member_by_member(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "over"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        old = first_member(talk, group)
        talk.ask(commit(talk.side, 8, group, member_id=old.member_id, generation=1), 8)
        one = Consumer(talk, group, "one").join()
        described(talk, group)
        talk.ask_in_all_versions(heartbeat(group, old.generation, old.member_id))
        talk.ask(sync(group, old.generation, old.member_id))
        old = rejoined(talk, old)
        talk.ask(heartbeat(group, old.generation, old.member_id))
        one.beat_until_owning(1)
        described(talk, group)
        known: dict[str, Any] = {"member_id": old.member_id, "generation": old.generation}
        for version in 8, 9:
            talk.ask(commit(talk.side, version, group, **known), version)
            talk.ask(commit(talk.side, version, group, **(known | {"generation": 77})), version)
        talk.ask(fetched(talk.side, 9, group), 9)
        talk.ask(leave(group, old.member_id))
        one.beat_until_owning(2)
        described(talk, group)

    agree(coordinators, conversation)


def test_a_group_goes_back_when_its_last_consumer_leaves(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "back"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        one = Consumer(talk, group, "one").join().beat_until_owning(2)
        talk.ask(commit(talk.side, 9, group, member_id="one", generation=one.epoch), 9)
        answer = talk.ask(join(group))
        talk.name(answer.member_id, "old")
        old = rejoined(talk, Member(group, answer.member_id, 0))
        one.beat_until_owning(1)
        one.beat()
        talk.ask_until(
            lambda: heartbeat(group, old.generation, old.member_id),
            4,
            lambda answer: answer.error_code != 0,
        )
        old = rejoined(talk, old)
        described(talk, group)
        one.leave()
        described(talk, group)
        talk.ask(heartbeat(group, old.generation, old.member_id))
        old = rejoined(talk, old)
        described(talk, group)
        talk.ask(fetched(talk.side, 9, group), 9)

    agree(coordinators, conversation)


def test_an_empty_group_becomes_what_its_first_member_speaks(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "empty"
        talk.ask(commit(talk.side, 9, group), 9)
        Consumer(talk, group, "one").join().leave()
        described(talk, group)
        first = first_member(talk, group)
        described(talk, group)
        talk.ask(fetched(talk.side, 9, group), 9)
        talk.ask(leave(group, first.member_id))
        Consumer(talk, group, "two").join()
        described(talk, group)
        talk.ask(fetched(talk.side, 9, group), 9)

    agree(coordinators, conversation)


def test_a_static_member_moves_over(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "static-over"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        old = first_member(talk, group, instance="i")
        one = Consumer(talk, group, "one").join(instance_id="i")
        described(talk, group)
        talk.ask(heartbeat(group, old.generation, old.member_id, "i"))
        talk.ask(join(group, old.member_id, instance="i"))
        one.beat_until_owning(2)

    agree(coordinators, conversation)


def test_a_classic_member_that_does_not_keep_up(coordinators: Sides) -> None:
    """Wrong generations, protocols and bytes from a classic member of a consumer group."""

    def conversation(talk: Talk) -> None:
        group = "keep-up"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        Consumer(talk, group, "one").join().beat_until_owning(2)
        asked = talk.ask(join(group))
        talk.name(asked.member_id, "old")
        old = Member(group, asked.member_id, 0)
        talk.ask_in_all_versions(sync(group, 1, old.member_id))
        talk.ask_in_all_versions(heartbeat(group, 1, old.member_id))
        joined = talk.ask(join(group, old.member_id, protocols=["range", "roundrobin"]))
        generation = joined.generation_id
        talk.ask_in_all_versions(sync(group, generation + 1, old.member_id))
        talk.ask(sync(group, generation, old.member_id, protocol="sticky"))
        talk.ask(sync(group, generation, old.member_id, protocol=None))
        talk.ask(sync(group, generation, old.member_id, protocol_type="connect"))
        talk.ask(sync(group, generation, old.member_id))
        talk.ask_in_all_versions(heartbeat(group, generation + 1, old.member_id))
        talk.ask_in_all_versions(heartbeat(group, generation, old.member_id, "i"))
        talk.ask(join(group, old.member_id, protocol_type="connect"))
        talk.ask(join(group, old.member_id, protocols=["range"]))
        talk.ask(join(group, old.member_id, metadata=subscription(PLAIN, version=0)))
        talk.ask(join(group, old.member_id, metadata=subscription("other", version=3)))
        described(talk, group)
        talk.ask(leave(group, old.member_id))
        talk.ask(leave(group, old.member_id))

    agree(coordinators, conversation)
