"""Describing, listing and deleting groups of either kind, in every version."""

from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.consumers import Consumer
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import (
    first_member,
    join,
    join_member,
    leave,
    request_member_id,
)
from tests.conformance.side_by_side.offsets import commit, fetch_offsets
from tests.conformance.side_by_side.sides import Sides

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)

pytestmark = pytest.mark.peer


def describe(dialog: Dialog, *groups: str) -> None:
    """Describes groups as classic and as consumer groups."""
    for operations in False, True:
        dialog.send_in_all_versions(
            DescribeGroupsRequest(groups=list(groups), include_authorized_operations=operations)
        )
        dialog.send_in_all_versions(
            ConsumerGroupDescribeRequest(
                group_ids=list(groups), include_authorized_operations=operations
            )
        )


def test_unknown_groups_are_described_and_deleted_alike(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        describe(dialog)
        describe(dialog, "admin-unknown")
        describe(dialog, "admin-unknown", "admin-unknown", "other")
        for group in "admin-unknown", "":
            dialog.send_in_all_versions(DeleteGroupsRequest(groups_names=[group]))
        dialog.send_in_all_versions(DeleteGroupsRequest(groups_names=[]))
        dialog.send_in_all_versions(DeleteGroupsRequest(groups_names=["a", "a", "b"]))

    assert_same_dialog(coordinators, script)


def test_a_group_with_an_empty_name(coordinators: Sides) -> None:
    assert_same_dialog(coordinators, lambda dialog: describe(dialog, ""))


def test_a_classic_group_is_described_in_every_state(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "admin-classic"
        request_member_id(dialog, group, "pending")
        # A group is described as of the last committed write: wait for it.
        dialog.send_until(
            lambda: DescribeGroupsRequest(groups=[group]),
            6,
            lambda response: response.groups[0].group_state == "Empty",
        )
        describe_and_try_delete(dialog, group)
        one = join_member(dialog, group, "one", instance="i")
        describe_and_try_delete(dialog, group)
        first = first_member(dialog, "admin-stable", protocols=["range", "sticky"])
        describe_and_try_delete(dialog, "admin-stable")
        second = request_member_id(dialog, "admin-stable", "second")
        waiting = dialog.send_async(join("admin-stable", second, protocols=["sticky"]))
        dialog.send_until(
            lambda: DescribeGroupsRequest(groups=["admin-stable"]),
            6,
            lambda response: response.groups[0].group_state == "PreparingRebalance",
        )
        describe_and_try_delete(dialog, "admin-stable")
        dialog.send(leave("admin-stable", first.member_id))
        waiting.response()
        dialog.send(leave("admin-stable", second))
        describe_and_try_delete(dialog, group)
        dialog.send(leave(group, one.member_id))

    assert_same_dialog(coordinators, script)


def describe_and_try_delete(dialog: Dialog, group: str) -> None:
    describe(dialog, group)
    dialog.send_in_all_versions(DeleteGroupsRequest(groups_names=[group, "admin-unknown"]))
    list_groups(dialog, group)


def list_groups(dialog: Dialog, *groups: str, **filters: Any) -> None:
    """Compares only these groups, because other tests leave groups behind."""
    for version in dialog.supported_versions(ListGroupsRequest):
        if filters and version < 5:
            continue
        response: Any = dialog.side.send(ListGroupsRequest(**filters), version)
        response.groups = [group for group in response.groups if group.group_id in groups]
        dialog.add_response(f"ListGroups v{version}", response)


def test_an_empty_group_is_described_and_deleted(coordinators: Sides) -> None:
    """A group with offsets only, and a group whose members left; both can be deleted."""

    def script(dialog: Dialog) -> None:
        offsets, left = "admin-offsets", "admin-left"
        dialog.send(commit(dialog.side, 9, offsets), 9)
        member = first_member(dialog, left)
        dialog.send(leave(left, member.member_id))
        describe(dialog, offsets, left)
        list_groups(dialog, offsets, left)
        dialog.send(DeleteGroupsRequest(groups_names=[offsets, left, offsets]), 2)
        describe(dialog, offsets, left)
        list_groups(dialog, offsets, left)
        dialog.send(fetch_offsets(dialog.side, 9, offsets), 9)

    assert_same_dialog(coordinators, script)


def test_a_consumer_group_is_described_in_every_state(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "admin-848"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        one = Consumer(dialog, group, "one").join(
            instance_id="i", rack_id="r", server_assignor="range"
        )
        describe(dialog, group)
        dialog.send_in_all_versions(DeleteGroupsRequest(groups_names=[group]))
        list_groups(dialog, group)
        two = Consumer(dialog, group, "two").join(topics=["not-there", PLAIN])
        one.heartbeat_until_owning(1)
        describe(dialog, group)
        list_groups(dialog, group)
        one.heartbeat()
        two.heartbeat_until_owning(1)
        describe(dialog, group)
        list_groups(dialog, group)
        two.leave()
        one.leave()
        describe(dialog, group)
        list_groups(dialog, group)
        dialog.send(DeleteGroupsRequest(groups_names=[group]), 2)
        describe(dialog, group)

    assert_same_dialog(coordinators, script)


def test_a_consumer_group_with_a_pattern_is_described(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "admin-pattern"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        one = Consumer(dialog, group, "one")
        one.join(topics=None, subscribed_topic_regex="pl[a-z]+").heartbeat_until_owning(2)
        describe(dialog, group)
        one.heartbeat(topics=["also", "this"])
        describe(dialog, group)
        one.leave()

    assert_same_dialog(coordinators, script)


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


def test_groups_are_listed_by_state_and_type(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        groups = "list-offsets", "list-classic", "list-connect", "list-consumer"
        dialog.send(commit(dialog.side, 9, groups[0]), 9)
        first_member(dialog, groups[1])
        first_member(dialog, groups[2], protocol_type="connect")
        Consumer(dialog, groups[3], "one").join().heartbeat_until_owning(2)
        list_groups(dialog, *groups)
        for states, types in FILTERS:
            list_groups(dialog, *groups, states_filter=states, types_filter=types)

    assert_same_dialog(coordinators, script)
