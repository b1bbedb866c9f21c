"""Groups that migrate from the classic protocol to the consumer protocol, and back."""

from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.consumers import Consumer
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import (
    Member,
    first_member,
    heartbeat,
    join,
    leave,
    subscription,
    sync,
)
from tests.conformance.side_by_side.offsets import commit, fetch_offsets
from tests.conformance.side_by_side.sides import Sides

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest

pytestmark = pytest.mark.peer


def describe_group(dialog: Dialog, group: str) -> None:
    dialog.send(DescribeGroupsRequest(groups=[group]))
    dialog.send(ConsumerGroupDescribeRequest(group_ids=[group]))


def rejoin(dialog: Dialog, member: Member, **fields: Any) -> Member:
    """Rejoins a classic member in the next generation of the group."""
    response = dialog.send(join(member.group, member.member_id, **fields))
    assert response.error_code == 0, response
    parts = {other.member_id: b"" for other in response.members}
    dialog.send(sync(member.group, response.generation_id, member.member_id, parts))
    return Member(member.group, member.member_id, response.generation_id)


def test_a_classic_group_migrates_member_by_member(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "over"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        old = first_member(dialog, group)
        dialog.send(commit(dialog.side, 8, group, member_id=old.member_id, generation=1), 8)
        one = Consumer(dialog, group, "one").join()
        describe_group(dialog, group)
        dialog.send_in_all_versions(heartbeat(group, old.generation, old.member_id))
        dialog.send(sync(group, old.generation, old.member_id))
        old = rejoin(dialog, old)
        dialog.send(heartbeat(group, old.generation, old.member_id))
        one.heartbeat_until_owning(1)
        describe_group(dialog, group)
        member_fields: dict[str, Any] = {"member_id": old.member_id, "generation": old.generation}
        for version in 8, 9:
            dialog.send(commit(dialog.side, version, group, **member_fields), version)
            dialog.send(
                commit(dialog.side, version, group, **(member_fields | {"generation": 77})), version
            )
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)
        dialog.send(leave(group, old.member_id))
        one.heartbeat_until_owning(2)
        describe_group(dialog, group)

    assert_same_dialog(coordinators, script)


def test_a_group_is_classic_again_when_its_last_consumer_leaves(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "back"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        one = Consumer(dialog, group, "one").join().heartbeat_until_owning(2)
        dialog.send(commit(dialog.side, 9, group, member_id="one", generation=one.epoch), 9)
        response = dialog.send(join(group))
        dialog.set_alias(response.member_id, "old")
        old = rejoin(dialog, Member(group, response.member_id, 0))
        one.heartbeat_until_owning(1)
        one.heartbeat()
        dialog.send_until(
            lambda: heartbeat(group, old.generation, old.member_id),
            4,
            lambda response: response.error_code != 0,
        )
        old = rejoin(dialog, old)
        describe_group(dialog, group)
        one.leave()
        describe_group(dialog, group)
        dialog.send(heartbeat(group, old.generation, old.member_id))
        old = rejoin(dialog, old)
        describe_group(dialog, group)
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)

    assert_same_dialog(coordinators, script)


def test_an_empty_group_gets_the_protocol_of_its_first_member(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "empty"
        dialog.send(commit(dialog.side, 9, group), 9)
        Consumer(dialog, group, "one").join().leave()
        describe_group(dialog, group)
        first = first_member(dialog, group)
        describe_group(dialog, group)
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)
        dialog.send(leave(group, first.member_id))
        Consumer(dialog, group, "two").join()
        describe_group(dialog, group)
        dialog.send(fetch_offsets(dialog.side, 9, group), 9)

    assert_same_dialog(coordinators, script)


def test_a_static_member_migrates(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "static-over"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        old = first_member(dialog, group, instance="i")
        one = Consumer(dialog, group, "one").join(instance_id="i")
        describe_group(dialog, group)
        dialog.send(heartbeat(group, old.generation, old.member_id, "i"))
        dialog.send(join(group, old.member_id, instance="i"))
        one.heartbeat_until_owning(2)

    assert_same_dialog(coordinators, script)


def test_invalid_requests_of_a_classic_member_of_a_consumer_group(coordinators: Sides) -> None:
    """Wrong generations, protocols and bytes."""

    def script(dialog: Dialog) -> None:
        group = "keep-up"
        dialog.set_alias(dialog.side.topic_id(PLAIN), "plain's id")
        Consumer(dialog, group, "one").join().heartbeat_until_owning(2)
        requested = dialog.send(join(group))
        dialog.set_alias(requested.member_id, "old")
        old = Member(group, requested.member_id, 0)
        dialog.send_in_all_versions(sync(group, 1, old.member_id))
        dialog.send_in_all_versions(heartbeat(group, 1, old.member_id))
        response = dialog.send(join(group, old.member_id, protocols=["range", "roundrobin"]))
        generation = response.generation_id
        dialog.send_in_all_versions(sync(group, generation + 1, old.member_id))
        dialog.send(sync(group, generation, old.member_id, protocol="sticky"))
        dialog.send(sync(group, generation, old.member_id, protocol=None))
        dialog.send(sync(group, generation, old.member_id, protocol_type="connect"))
        dialog.send(sync(group, generation, old.member_id))
        dialog.send_in_all_versions(heartbeat(group, generation + 1, old.member_id))
        dialog.send_in_all_versions(heartbeat(group, generation, old.member_id, "i"))
        dialog.send(join(group, old.member_id, protocol_type="connect"))
        dialog.send(join(group, old.member_id, protocols=["range"]))
        dialog.send(join(group, old.member_id, metadata=subscription(PLAIN, version=0)))
        dialog.send(join(group, old.member_id, metadata=subscription("other", version=3)))
        describe_group(dialog, group)
        dialog.send(leave(group, old.member_id))
        dialog.send(leave(group, old.member_id))

    assert_same_dialog(coordinators, script)
