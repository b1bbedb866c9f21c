"""The classic group protocol: joining, syncing, heartbeats and leaving, in every version."""

from typing import Any

import pytest
from tests.conformance.same.groups import (
    assignment,
    first_member,
    heartbeat,
    join,
    joined,
    leave,
    leave_all,
    member_id_for,
    subscription,
    sync,
)
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree

pytestmark = pytest.mark.peer

SHORTEST_SESSION_MS = 6_000
LONGEST_SESSION_MS = 1_800_000

ODD_JOINS: dict[str, dict[str, Any]] = {
    "no_group": {"group": ""},
    "session_too_short": {"session_ms": SHORTEST_SESSION_MS - 1},
    "session_too_long": {"session_ms": LONGEST_SESSION_MS + 1},
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


@pytest.mark.parametrize("case", ODD_JOINS)
def test_an_odd_join(coordinators: Sides, case: str) -> None:
    agree(
        coordinators,
        lambda talk: talk.ask_in_all_versions(join(**({"group": f"odd-{case}"} | ODD_JOINS[case]))),
    )


@pytest.mark.parametrize("version", range(10))
def test_a_member_comes_and_goes(coordinators: Sides, version: int) -> None:
    def conversation(talk: Talk) -> None:
        group = f"alone-{version}"
        first = first_member(talk, group, version=version)
        talk.ask(heartbeat(group, first.generation, first.member_id), min(version, 4))
        again = talk.ask(join(group, first.member_id), version)
        talk.ask(sync(group, again.generation_id, first.member_id, {}), min(version, 5))
        talk.ask(leave(group, first.member_id, min(version, 5)), min(version, 5))
        talk.ask(heartbeat(group, again.generation_id, first.member_id), min(version, 4))

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", range(10))
def test_two_members_rebalance(coordinators: Sides, version: int) -> None:
    """The second waits for the first, the follower for the leader's assignment."""

    def conversation(talk: Talk) -> None:
        group = f"two-{version}"
        synced = min(version, 5)
        first = first_member(talk, group, version=version, protocols=["range", "sticky"])
        second_id = ""
        if version >= 4:
            second_id = member_id_for(talk, group, "second")
        both = ["range", "sticky"]
        waiting = talk.call(join(group, second_id, protocols=both), version)
        talk.ask_until(
            lambda: heartbeat(group, first.generation, first.member_id),
            min(version, 4),
            lambda answer: answer.error_code != 0,
        )
        talk.ask(sync(group, first.generation, first.member_id), synced)
        led = talk.ask(join(group, first.member_id, protocols=["range", "sticky"]), version)
        second_id = waiting.answer().member_id
        talk.name(second_id, "second")
        follows = talk.call(sync(group, led.generation_id, second_id), synced)
        parts = {
            first.member_id: assignment("plain", 0),
            second_id: assignment("plain", 1),
            "nobody": b"nothing",
        }
        talk.ask(sync(group, led.generation_id, first.member_id, parts), synced)
        follows.answer()
        talk.ask(sync(group, led.generation_id, second_id), synced)
        # A follower that joins again with nothing new is told what it knows already.
        talk.ask(join(group, second_id, protocols=both), version)
        talk.ask(leave(group, second_id, synced), synced)
        talk.ask(heartbeat(group, led.generation_id, first.member_id), min(version, 4))
        talk.ask(leave(group, first.member_id, synced), synced)

    agree(coordinators, conversation)


JOINS_OF_A_STABLE_GROUP: dict[str, dict[str, Any]] = {
    "other_type": {"protocol_type": "connect"},
    "other_protocol": {"protocols": ["cooperative-sticky"]},
    "unknown_member": {"member_id": "nobody"},
    "unknown_instance": {"member_id": "nobody", "instance": "i"},
    "no_protocols": {"protocols": []},
}


@pytest.mark.parametrize("case", JOINS_OF_A_STABLE_GROUP)
def test_a_join_that_does_not_fit_the_group(coordinators: Sides, case: str) -> None:
    def conversation(talk: Talk) -> None:
        group = f"unfit-{case}"
        first = first_member(talk, group)
        talk.ask_in_all_versions(join(group, **JOINS_OF_A_STABLE_GROUP[case]))
        talk.ask(heartbeat(group, first.generation, first.member_id))

    agree(coordinators, conversation)


def test_requests_of_members_that_nobody_knows(coordinators: Sides) -> None:
    """In a group that is not there, then in one that is."""

    def conversation(talk: Talk) -> None:
        for group in "no-such-group", "", "known":
            generation = 1
            if group == "known":
                generation = first_member(talk, group).generation
            for member in "nobody", "":
                talk.ask_in_all_versions(sync(group, generation, member))
                talk.ask_in_all_versions(sync(group, -1, member))
                talk.ask_in_all_versions(heartbeat(group, generation, member))
                talk.ask_in_all_versions(heartbeat(group, -1, member))
                talk.ask_in_all_versions(leave(group, member, 0))
                talk.ask_in_all_versions(leave(group, member))

    agree(coordinators, conversation)


def test_what_does_not_fit_the_generation(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "generations"
        first = first_member(talk, group)
        for generation in -1, 0, 2, 100:
            talk.ask_in_all_versions(sync(group, generation, first.member_id))
            talk.ask_in_all_versions(heartbeat(group, generation, first.member_id))
        for fields in (
            {"protocol": "sticky"},
            {"protocol": None},
            {"protocol_type": "connect"},
            {"protocol_type": None},
            {"protocol_type": None, "protocol": None},
            {"instance": "never-heard-of"},
        ):
            talk.ask_in_all_versions(
                sync(group, first.generation, first.member_id, **fields), start=3
            )
        talk.ask_in_all_versions(
            heartbeat(group, first.generation, first.member_id, "never-heard-of")
        )

    agree(coordinators, conversation)


def test_a_group_that_waits_for_its_leader(coordinators: Sides) -> None:
    """Joined, not synced: CompletingRebalance."""

    def conversation(talk: Talk) -> None:
        group = "completing"
        first = joined(talk, group, "first")
        talk.ask_in_all_versions(heartbeat(group, first.generation, first.member_id))
        talk.ask(join(group, first.member_id))
        talk.ask(join(group, first.member_id, metadata=subscription("other")))
        talk.ask(sync(group, first.generation + 1, first.member_id))
        talk.ask(heartbeat(group, first.generation + 1, first.member_id))

    agree(coordinators, conversation)


def test_a_member_that_was_given_an_id_and_did_not_join(coordinators: Sides) -> None:
    """KIP-394: it is pending."""

    def conversation(talk: Talk) -> None:
        group = "pending"
        pending = member_id_for(talk, group, "pending")
        talk.ask_in_all_versions(heartbeat(group, -1, pending))
        talk.ask_in_all_versions(heartbeat(group, 0, pending))
        talk.ask_in_all_versions(sync(group, 0, pending))
        talk.ask_in_all_versions(sync(group, -1, pending))
        talk.ask(leave(group, pending))
        talk.ask(leave(group, pending))
        talk.ask(join(group, pending))
        other = member_id_for(talk, group, "other")
        talk.ask(leave(group, other, 0), 2)
        stays = member_id_for(talk, group, "stays")
        talk.ask(join(group, stays, protocols=["sticky"]))
        talk.ask(heartbeat(group, 1, stays))

    agree(coordinators, conversation)


def test_a_static_member_is_replaced(coordinators: Sides) -> None:
    """KIP-345: the newcomer takes the place, the old one is fenced."""

    def conversation(talk: Talk) -> None:
        group = "static"
        old = first_member(talk, group, "old", instance="one")
        talk.ask(join(group, instance="one"), 5)
        new = joined(talk, group, "new", instance="one")
        talk.ask_in_all_versions(join(group, old.member_id, instance="one"), start=5)
        talk.ask_in_all_versions(heartbeat(group, new.generation, old.member_id, "one"), start=3)
        talk.ask_in_all_versions(heartbeat(group, new.generation, old.member_id))
        talk.ask_in_all_versions(heartbeat(group, new.generation, new.member_id, "two"), start=3)
        talk.ask_in_all_versions(
            sync(group, new.generation, old.member_id, instance="one"), start=3
        )
        talk.ask_in_all_versions(sync(group, new.generation, new.member_id, instance="one"))
        talk.ask_in_all_versions(heartbeat(group, new.generation, new.member_id, "one"))
        talk.ask(join(group, "nobody", instance="one"))
        talk.ask(join(group, new.member_id, instance="two"))
        talk.ask(leave_all(group, (old.member_id, "one")))
        talk.ask(leave_all(group, ("", "two")))
        talk.ask(leave_all(group, ("", "one"), ("", "one"), ("nobody", None), ("", None)))
        talk.ask(leave_all(group))

    agree(coordinators, conversation)


def test_a_static_member_comes_back_with_another_subscription(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "static-changed"
        old = first_member(talk, group, "old", instance="one", protocols=["range", "sticky"])
        new = talk.ask(join(group, instance="one", protocols=["sticky"]))
        talk.name(new.member_id, "new")
        talk.ask(heartbeat(group, new.generation_id, new.member_id, "one"))
        talk.ask(heartbeat(group, old.generation, old.member_id, "one"))
        talk.ask(join(group, instance="one", protocols=["roundrobin"], protocol_type="connect"))

    agree(coordinators, conversation)


@pytest.mark.parametrize("metadata", [b"", b"\x00", b"\x7f\xff" + bytes(8)], ids=repr)
def test_subscriptions_that_nobody_can_read(coordinators: Sides, metadata: bytes) -> None:
    """The classic coordinator passes them on unread."""

    def conversation(talk: Talk) -> None:
        group = f"unreadable-{metadata.hex()}"
        first = first_member(talk, group, metadata=metadata)
        talk.ask(sync(group, first.generation, first.member_id))
        talk.ask(heartbeat(group, first.generation, first.member_id))

    agree(coordinators, conversation)


def test_an_assignment_that_nobody_can_read(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "unreadable-assignment"
        first = joined(talk, group, "first")
        parts = {first.member_id: b"\xff\xff\x7f"}
        talk.ask(sync(group, first.generation, first.member_id, parts))
        talk.ask(sync(group, first.generation, first.member_id))

    agree(coordinators, conversation)
