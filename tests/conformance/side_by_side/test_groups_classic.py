"""The classic group protocol: joining, syncing, heartbeats and leaving, in every version."""

from typing import Any

import pytest
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.groups import (
    assignment,
    first_member,
    heartbeat,
    join,
    join_member,
    leave,
    leave_all,
    request_member_id,
    subscription,
    sync,
)
from tests.conformance.side_by_side.sides import Sides

pytestmark = pytest.mark.peer

MIN_SESSION_MS = 6_000
MAX_SESSION_MS = 1_800_000

INVALID_JOINS: dict[str, dict[str, Any]] = {
    "no_group": {"group": ""},
    "session_too_short": {"session_ms": MIN_SESSION_MS - 1},
    "session_too_long": {"session_ms": MAX_SESSION_MS + 1},
    "session_negative": {"session_ms": -1},
    "no_protocols": {"protocols": []},
    "no_protocol_type": {"protocol_type": ""},
    "member_unknown": {"member_id": "nobody"},
    "static_member_unknown": {"member_id": "nobody", "instance": "i"},
    "instance_empty": {"instance": ""},
    "instance_with_blank": {"instance": "a b"},
    "instance_dots": {"instance": ".."},
    "instance_too_long": {"instance": "i" * 250},
    "everything_wrong": {"group": "", "session_ms": -1, "protocols": [], "member_id": "x"},
}


@pytest.mark.parametrize("case", INVALID_JOINS)
def test_an_invalid_join(coordinators: Sides, case: str) -> None:
    assert_same_dialog(
        coordinators,
        lambda dialog: dialog.send_in_all_versions(
            join(**({"group": f"odd-{case}"} | INVALID_JOINS[case]))
        ),
    )


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_rejoins_and_leaves(coordinators: Sides, version: int) -> None:
    def script(dialog: Dialog) -> None:
        group = f"alone-{version}"
        first = first_member(dialog, group, version=version)
        dialog.send(heartbeat(group, first.generation, first.member_id), min(version, 4))
        again = dialog.send(join(group, first.member_id), version)
        dialog.send(sync(group, again.generation_id, first.member_id, {}), min(version, 5))
        dialog.send(leave(group, first.member_id, min(version, 5)), min(version, 5))
        dialog.send(heartbeat(group, again.generation_id, first.member_id), min(version, 4))

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("version", range(10))
def test_two_members_rebalance(coordinators: Sides, version: int) -> None:
    """The second member waits for the first, and the follower for the leader's assignment."""

    def script(dialog: Dialog) -> None:
        group = f"two-{version}"
        synced = min(version, 5)
        first = first_member(dialog, group, version=version, protocols=["range", "sticky"])
        second_id = ""
        if version >= 4:
            second_id = request_member_id(dialog, group, "second")
        both = ["range", "sticky"]
        waiting = dialog.send_async(join(group, second_id, protocols=both), version)
        dialog.send_until(
            lambda: heartbeat(group, first.generation, first.member_id),
            min(version, 4),
            lambda response: response.error_code != 0,
        )
        dialog.send(sync(group, first.generation, first.member_id), synced)
        led = dialog.send(join(group, first.member_id, protocols=["range", "sticky"]), version)
        second_id = waiting.response().member_id
        dialog.set_alias(second_id, "second")
        follows = dialog.send_async(sync(group, led.generation_id, second_id), synced)
        parts = {
            first.member_id: assignment("plain", 0),
            second_id: assignment("plain", 1),
            "nobody": b"nothing",
        }
        dialog.send(sync(group, led.generation_id, first.member_id, parts), synced)
        follows.response()
        dialog.send(sync(group, led.generation_id, second_id), synced)
        # A follower that rejoins without changes gets the current generation.
        dialog.send(join(group, second_id, protocols=both), version)
        dialog.send(leave(group, second_id, synced), synced)
        dialog.send(heartbeat(group, led.generation_id, first.member_id), min(version, 4))
        dialog.send(leave(group, first.member_id, synced), synced)

    assert_same_dialog(coordinators, script)


INVALID_JOINS_OF_STABLE_GROUP: dict[str, dict[str, Any]] = {
    "other_type": {"protocol_type": "connect"},
    "other_protocol": {"protocols": ["cooperative-sticky"]},
    "unknown_member": {"member_id": "nobody"},
    "unknown_instance": {"member_id": "nobody", "instance": "i"},
    "no_protocols": {"protocols": []},
}


@pytest.mark.parametrize("case", INVALID_JOINS_OF_STABLE_GROUP)
def test_a_join_that_is_inconsistent_with_the_group(coordinators: Sides, case: str) -> None:
    def script(dialog: Dialog) -> None:
        group = f"unfit-{case}"
        first = first_member(dialog, group)
        dialog.send_in_all_versions(join(group, **INVALID_JOINS_OF_STABLE_GROUP[case]))
        dialog.send(heartbeat(group, first.generation, first.member_id))

    assert_same_dialog(coordinators, script)


def test_requests_of_unknown_members(coordinators: Sides) -> None:
    """In an unknown group, then in an existing one."""

    def script(dialog: Dialog) -> None:
        for group in "no-such-group", "", "known":
            generation = 1
            if group == "known":
                generation = first_member(dialog, group).generation
            for member in "nobody", "":
                dialog.send_in_all_versions(sync(group, generation, member))
                dialog.send_in_all_versions(sync(group, -1, member))
                dialog.send_in_all_versions(heartbeat(group, generation, member))
                dialog.send_in_all_versions(heartbeat(group, -1, member))
                dialog.send_in_all_versions(leave(group, member, 0))
                dialog.send_in_all_versions(leave(group, member))

    assert_same_dialog(coordinators, script)


def test_requests_of_another_generation_or_protocol(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "generations"
        first = first_member(dialog, group)
        for generation in -1, 0, 2, 100:
            dialog.send_in_all_versions(sync(group, generation, first.member_id))
            dialog.send_in_all_versions(heartbeat(group, generation, first.member_id))
        for fields in (
            {"protocol": "sticky"},
            {"protocol": None},
            {"protocol_type": "connect"},
            {"protocol_type": None},
            {"protocol_type": None, "protocol": None},
            {"instance": "never-heard-of"},
        ):
            dialog.send_in_all_versions(
                sync(group, first.generation, first.member_id, **fields), start=3
            )
        dialog.send_in_all_versions(
            heartbeat(group, first.generation, first.member_id, "never-heard-of")
        )

    assert_same_dialog(coordinators, script)


def test_a_group_before_its_leader_syncs(coordinators: Sides) -> None:
    """The group is in CompletingRebalance."""

    def script(dialog: Dialog) -> None:
        group = "completing"
        first = join_member(dialog, group, "first")
        dialog.send_in_all_versions(heartbeat(group, first.generation, first.member_id))
        dialog.send(join(group, first.member_id))
        dialog.send(join(group, first.member_id, metadata=subscription("other")))
        dialog.send(sync(group, first.generation + 1, first.member_id))
        dialog.send(heartbeat(group, first.generation + 1, first.member_id))

    assert_same_dialog(coordinators, script)


def test_a_pending_member(coordinators: Sides) -> None:
    """KIP-394: it has an id and has not joined."""

    def script(dialog: Dialog) -> None:
        group = "pending"
        pending = request_member_id(dialog, group, "pending")
        dialog.send_in_all_versions(heartbeat(group, -1, pending))
        dialog.send_in_all_versions(heartbeat(group, 0, pending))
        dialog.send_in_all_versions(sync(group, 0, pending))
        dialog.send_in_all_versions(sync(group, -1, pending))
        dialog.send(leave(group, pending))
        dialog.send(leave(group, pending))
        dialog.send(join(group, pending))
        other = request_member_id(dialog, group, "other")
        dialog.send(leave(group, other, 0), 2)
        stays = request_member_id(dialog, group, "stays")
        dialog.send(join(group, stays, protocols=["sticky"]))
        dialog.send(heartbeat(group, 1, stays))

    assert_same_dialog(coordinators, script)


def test_a_static_member_is_replaced(coordinators: Sides) -> None:
    """KIP-345: the new member replaces the old one, which is fenced."""

    def script(dialog: Dialog) -> None:
        group = "static"
        old = first_member(dialog, group, "old", instance="one")
        dialog.send(join(group, instance="one"), 5)
        new = join_member(dialog, group, "new", instance="one")
        dialog.send_in_all_versions(join(group, old.member_id, instance="one"), start=5)
        dialog.send_in_all_versions(heartbeat(group, new.generation, old.member_id, "one"), start=3)
        dialog.send_in_all_versions(heartbeat(group, new.generation, old.member_id))
        dialog.send_in_all_versions(heartbeat(group, new.generation, new.member_id, "two"), start=3)
        dialog.send_in_all_versions(
            sync(group, new.generation, old.member_id, instance="one"), start=3
        )
        dialog.send_in_all_versions(sync(group, new.generation, new.member_id, instance="one"))
        dialog.send_in_all_versions(heartbeat(group, new.generation, new.member_id, "one"))
        dialog.send(join(group, "nobody", instance="one"))
        dialog.send(join(group, new.member_id, instance="two"))
        dialog.send(leave_all(group, (old.member_id, "one")))
        dialog.send(leave_all(group, ("", "two")))
        dialog.send(leave_all(group, ("", "one"), ("", "one"), ("nobody", None), ("", None)))
        dialog.send(leave_all(group))

    assert_same_dialog(coordinators, script)


def test_a_static_member_rejoins_with_another_subscription(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "static-changed"
        old = first_member(dialog, group, "old", instance="one", protocols=["range", "sticky"])
        new = dialog.send(join(group, instance="one", protocols=["sticky"]))
        dialog.set_alias(new.member_id, "new")
        dialog.send(heartbeat(group, new.generation_id, new.member_id, "one"))
        dialog.send(heartbeat(group, old.generation, old.member_id, "one"))
        dialog.send(join(group, instance="one", protocols=["roundrobin"], protocol_type="connect"))

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x7f\xff" + bytes(8)], ids=repr)
def test_unreadable_subscriptions(coordinators: Sides, metadata: bytes) -> None:
    """The classic coordinator forwards them without reading them."""

    def script(dialog: Dialog) -> None:
        group = f"unreadable-{metadata.hex()}"
        first = first_member(dialog, group, metadata=metadata)
        dialog.send(sync(group, first.generation, first.member_id))
        dialog.send(heartbeat(group, first.generation, first.member_id))

    assert_same_dialog(coordinators, script)


def test_an_unreadable_assignment(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        group = "unreadable-assignment"
        first = join_member(dialog, group, "first")
        parts = {first.member_id: b"\xff\xff\x7f"}
        dialog.send(sync(group, first.generation, first.member_id, parts))
        dialog.send(sync(group, first.generation, first.member_id))

    assert_same_dialog(coordinators, script)
