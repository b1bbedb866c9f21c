"""Describing, listing and deleting groups of either kind, in every version."""

from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import first_member, join, joined, leave, member_id_for
from tests.conformance.same.offsets import commit, fetched
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)

pytestmark = pytest.mark.peer


def describe(talk: Talk, *groups: str) -> None:
    """As both kinds of group."""
    for operations in False, True:
        talk.ask_in_all_versions(
            DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
        )
        talk.ask_in_all_versions(
            ConsumerGroupDescribeRequest(
                group_ids=list(groups), include_authorized_operations=operations
            )
        )


def test_groups_that_are_not_there(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        describe(talk)
        describe(talk, "admin-unknown")
        describe(talk, "admin-unknown", "admin-unknown", "other")
        for group in "admin-unknown", "":
            talk.ask_in_all_versions(DeleteGroupsRequest(groups_names=[group]))
        talk.ask_in_all_versions(DeleteGroupsRequest(groups_names=[]))
        talk.ask_in_all_versions(DeleteGroupsRequest(groups_names=["a", "a", "b"]))

    agree(coordinators, conversation)


def test_a_group_without_a_name(coordinators: Sides) -> None:
    agree(coordinators, lambda talk: describe(talk, ""))


def test_a_classic_group_in_its_states(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "admin-classic"
        member_id_for(talk, group, "pending")
        # A group is described as of the last committed write, which this one waits for.
        talk.ask_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda answer: answer.groups[0].group_state == "Empty",
        )
        described_and_not_deleted(talk, group)
        one = joined(talk, group, "one", instance="i")
        described_and_not_deleted(talk, group)
        first = first_member(talk, "admin-stable", protocols=["range", "sticky"])
        described_and_not_deleted(talk, "admin-stable")
        second = member_id_for(talk, "admin-stable", "second")
        waiting = talk.call(join("admin-stable", second, protocols=["sticky"]))
        talk.ask_until(
            lambda: DescribeGroupsRequest(groups=["admin-stable"]),
            6,
            lambda answer: answer.groups[0].group_state == "PreparingRebalance",
        )
        described_and_not_deleted(talk, "admin-stable")
        talk.ask(leave("admin-stable", first.member_id))
        waiting.answer()
        talk.ask(leave("admin-stable", second))
        described_and_not_deleted(talk, group)
        talk.ask(leave(group, one.member_id))

    agree(coordinators, conversation)


def described_and_not_deleted(talk: Talk, group: str) -> None:
    describe(talk, group)
    talk.ask_in_all_versions(DeleteGroupsRequest(groups_names=[group, "admin-unknown"]))
    listed(talk, group)


def listed(talk: Talk, *groups: str, **filters: Any) -> None:
    """These groups alone: other tests leave theirs behind."""
    for version in talk.served(ListGroupsRequest):
        if filters and version < 5:
            continue
        answer: Any = talk.side.ask(ListGroupsRequest(**filters), version)
        answer.groups = [each for each in answer.groups if each.group_id in groups]
        talk.heard(f"ListGroups v{version}", answer)


def test_an_empty_group(coordinators: Sides) -> None:
    """One that only holds offsets, one whose members left; both can be deleted."""

    def conversation(talk: Talk) -> None:
        offsets, left = "admin-offsets", "admin-left"
        talk.ask(commit(talk.side, 9, offsets), 9)
        member = first_member(talk, left)
        talk.ask(leave(left, member.member_id))
        describe(talk, offsets, left)
        listed(talk, offsets, left)
        talk.ask(DeleteGroupsRequest(groups_names=[offsets, left, offsets]), 2)
        describe(talk, offsets, left)
        listed(talk, offsets, left)
        talk.ask(fetched(talk.side, 9, offsets), 9)

    agree(coordinators, conversation)


def test_a_consumer_group_in_its_states(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "admin-848"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        one = Consumer(talk, group, "one").join(
            instance_id="i", rack_id="r", server_assignor="range"
        )
        describe(talk, group)
        talk.ask_in_all_versions(DeleteGroupsRequest(groups_names=[group]))
        listed(talk, group)
        two = Consumer(talk, group, "two").join(topics=["not-there", PLAIN])
        one.beat_until_owning(1)
        describe(talk, group)
        listed(talk, group)
        one.beat()
        two.beat_until_owning(1)
        describe(talk, group)
        listed(talk, group)
        two.leave()
        one.leave()
        describe(talk, group)
        listed(talk, group)
        talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
        describe(talk, group)

    agree(coordinators, conversation)


def test_a_consumer_group_with_a_pattern(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "admin-pattern"
        talk.name(talk.side.topic_id(PLAIN), "plain's id")
        one = Consumer(talk, group, "one")
        one.join(topics=None, subscribed_topic_regex="pl[a-z]+").beat_until_owning(2)
        describe(talk, group)
        one.beat(topics=["also", "this"])
        describe(talk, group)
        one.leave()

    agree(coordinators, conversation)


FILTERS: list[tuple[list[str], list[str]]] = [
    ([], []),
    (["Stable"], []),
    (["stable"], []),
    (["STABLE", "Empty"], []),
    (["PreparingRebalance", "Assigning", "Reconciling", "Dead", "NotReady"], []),
    (["NoSuchState"], []),
    (["Stable", "NoSuchState"], []),
    ([""], []),
    ([], ["classic"]),
    ([], ["Classic"]),
    ([], ["consumer"]),
    ([], ["CONSUMER", "classic"]),
    ([], ["share", "streams"]),
    ([], ["NoSuchType"]),
    ([], ["classic", "NoSuchType"]),
    ([], [""]),
    (["Stable"], ["consumer"]),
    (["Empty"], ["classic"]),
]


def test_listing_groups(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        groups = "list-offsets", "list-classic", "list-connect", "list-consumer"
        talk.ask(commit(talk.side, 9, groups[0]), 9)
        first_member(talk, groups[1])
        first_member(talk, groups[2], protocol_type="connect")
        Consumer(talk, groups[3], "one").join().beat_until_owning(2)
        listed(talk, *groups)
        for states, types in FILTERS:
            listed(talk, *groups, states_filter=states, types_filter=types)

    agree(coordinators, conversation)
