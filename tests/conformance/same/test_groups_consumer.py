"""The consumer group protocol (KIP-848): heartbeats, right and wrong, in every version."""

from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN, create
from tests.conformance.same.consumers import (
    LEAVING,
    LEAVING_FOR_A_WHILE,
    PAUSE,
    Consumer,
    beat,
    configure,
    first_beat,
)
from tests.conformance.same.groups import first_member, heartbeat, join, leave
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree

from barnabas.wire.messages.consumer_groups import ConsumerGroupDescribeRequest
from barnabas.wire.messages.topics import DeleteTopicsRequest

pytestmark = pytest.mark.peer

UNKNOWN_ID = b"\x01" * 16

ODD_FIRST_BEATS: dict[str, dict[str, Any]] = {
    "no_group": {"group": ""},
    "blank_group": {"group": "  "},
    "no_member": {"member_id": "", "start": 1},
    "blank_member": {"member_id": " ", "start": 1},
    "member_is_no_uuid": {"member_id": "not a uuid", "server_assignor": "none"},
    "no_rebalance_timeout": {"rebalance_timeout_ms": -1},
    "rebalance_timeout_zero": {"rebalance_timeout_ms": 0},
    "partitions_unsaid": {"owned": None},
    "partitions_owned": {"owned": {UNKNOWN_ID: [0]}},
    "no_subscription": {"topics": None},
    "regex_empty": {"topics": None, "subscribed_topic_regex": ""},
    "regex_bad": {"topics": None, "subscribed_topic_regex": "["},
    "regex_with_lookahead": {"topics": None, "subscribed_topic_regex": "(?=plain)"},
    "names_and_bad_regex": {"subscribed_topic_regex": "*"},
    "instance_empty": {"instance_id": ""},
    "instance_blank": {"instance_id": " "},
    "rack_empty": {"rack_id": ""},
    "rack_blank": {"rack_id": " "},
    "assignor_empty": {"server_assignor": ""},
    "assignor_blank": {"server_assignor": " "},
    "assignor_unknown": {"server_assignor": "sticky"},
    "assignor_in_capitals": {"server_assignor": "UNIFORM"},
}


@pytest.mark.parametrize("case", ODD_FIRST_BEATS)
def test_an_odd_first_heartbeat(coordinators: Sides, case: str) -> None:
    fields = {"group": f"odd-{case}", "member_id": "m"} | ODD_FIRST_BEATS[case]
    start = fields.pop("start", 0)
    agree(coordinators, lambda talk: talk.ask_in_all_versions(first_beat(**fields), start=start))


BEATS_OF_NOBODY: dict[str, dict[str, Any]] = {
    "known_to_nobody": {"epoch": 1},
    "no_member": {"epoch": 1, "member_id": ""},
    "epoch_too_low": {"epoch": -3},
    "static_without_instance": {"epoch": LEAVING_FOR_A_WHILE},
    "leaving": {"epoch": LEAVING},
    "leaving_without_id": {"epoch": LEAVING, "member_id": ""},
    "leaving_static": {"epoch": LEAVING_FOR_A_WHILE, "instance_id": "i"},
    "leaving_with_all": {"epoch": LEAVING, "topics": [PLAIN], "owned": {}, "server_assignor": "x"},
    "assignor_unknown": {"epoch": 1, "server_assignor": "x"},
    "rebalance_timeout_zero": {"epoch": 1, "rebalance_timeout_ms": 0},
}


@pytest.mark.parametrize("known", [False, True], ids=["new_group", "known_group"])
@pytest.mark.parametrize("case", BEATS_OF_NOBODY)
def test_a_heartbeat_of_nobody(coordinators: Sides, case: str, known: bool) -> None:
    def conversation(talk: Talk) -> None:
        fields = {"group": f"nobody-{case}-{known}", "member_id": "m"} | BEATS_OF_NOBODY[case]
        if known:
            Consumer(talk, str(fields["group"]), "first").join()
        talk.ask_in_all_versions(beat(**fields))

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", [0, 1])
def test_who_chooses_the_member_id(coordinators: Sides, version: int) -> None:
    """The broker in v0, the client since v1."""

    def conversation(talk: Talk) -> None:
        group = f"member-ids-{version}"
        answer = talk.ask(first_beat(group, ""), version)
        talk.name(answer.member_id, "chosen by the broker")
        talk.ask(first_beat(group, "own"), version)

    agree(coordinators, conversation)


def test_a_member_alone(coordinators: Sides) -> None:
    """It is given everything, keeps it, changes its mind, and leaves."""

    def conversation(talk: Talk) -> None:
        group = "alone-848"
        one = Consumer(talk, group, "one").join()
        one.beat_until_owning(2)
        one.beat()
        one.beat(owned=None)
        one.beat(topics=[PLAIN])
        one.beat(rebalance_timeout_ms=20_000)
        one.beat(server_assignor="range")
        one.beat(topics=[])
        one.beat_until_owning(0)
        one.beat(topics=["not-there-yet", PLAIN])
        one.beat_until_owning(2)
        one.leave()
        one.leave()

    agree(coordinators, conversation)


def test_epochs_that_do_not_fit(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "epochs"
        one = Consumer(talk, group, "one").join().beat_until_owning(2)
        known = talk.side.topic_id(PLAIN)
        talk.ask_in_all_versions(beat(group, "one", one.epoch + 1))
        talk.ask_in_all_versions(beat(group, "one", one.epoch + 100, owned=one.owned))
        one.beat(topics=[PLAIN, "another"])
        talk.ask_in_all_versions(beat(group, "one", one.epoch - 1))
        talk.ask_in_all_versions(beat(group, "one", one.epoch - 1, owned={UNKNOWN_ID: [0]}))
        talk.ask_in_all_versions(beat(group, "one", one.epoch - 1, owned={known: [0, 1]}))
        one.beat(owned={known: [0, 1, 7], UNKNOWN_ID: [0]})
        talk.ask(first_beat(group, "one"))
        one.beat()

    agree(coordinators, conversation)


def test_two_members_share(coordinators: Sides) -> None:
    """What the first must give up the second is not given before."""

    def conversation(talk: Talk) -> None:
        group = "two-848"
        one = Consumer(talk, group, "one").join().beat_until_owning(2)
        two = Consumer(talk, group, "two").join()
        two.beat()
        one.beat_until_owning(1)
        two.beat()
        one.beat()
        two.beat_until_owning(1)
        one.leave()
        two.beat_until_owning(2)

    agree(coordinators, conversation)


def test_members_that_join_shortly_after_an_assignment(coordinators: Sides) -> None:
    """KIP-1263: they wait for the next one, at the epoch of the last."""

    def conversation(talk: Talk) -> None:
        group = "pause"
        configure(talk, group, PAUSE, "15000")
        one = Consumer(talk, group, "one").join()
        two = Consumer(talk, group, "two").join()
        one.beat()
        two.beat()
        one.beat(topics=[PLAIN, "another"])
        talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]))
        configure(talk, group, PAUSE, "0")
        two.beat_until_epoch(4)
        one.beat_until_owning(1)
        one.beat()
        two.beat_until_owning(1)
        talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]))

    agree(coordinators, conversation)


def test_ranges(coordinators: Sides) -> None:
    """Three members, two topics, one of them of interest to two members alone."""

    def conversation(talk: Talk) -> None:
        group = "ranges"
        for topic, partitions in ("ranges-a", 5), ("ranges-b", 3):
            create(talk.side, topic, partitions)
            talk.name(talk.side.topic_id(topic), topic)
        wanted = {"one": ["ranges-a"], "two": ["ranges-a", "ranges-b"], "three": ["ranges-b"]}
        members = [Consumer(talk, group, name) for name in wanted]
        for member in members:
            member.join(topics=wanted[member.member_id], server_assignor="range")
            for _ in wanted, wanted:
                for each in members[: members.index(member) + 1]:
                    each.beat()
        talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]))

    agree(coordinators, conversation)


def test_a_groups_own_settings(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "settings"
        one = Consumer(talk, group, "one").join()
        for setting, value in (
            ("consumer.heartbeat.interval.ms", "777"),
            ("consumer.heartbeat.interval.ms", "1"),
            ("consumer.heartbeat.interval.ms", "1000000"),
            ("consumer.session.timeout.ms", "50000"),
            ("consumer.session.timeout.ms", "5"),
            ("consumer.session.timeout.ms", "soon"),
            ("consumer.no.such.setting", "1"),
        ):
            configure(talk, group, setting, value)
        talk.ask_until(
            lambda: beat(group, "one", one.epoch), 1, lambda a: a.heartbeat_interval_ms == 777
        )

    agree(coordinators, conversation)


def test_static_members(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "static-848"
        one = Consumer(talk, group, "one").join(instance_id="i").beat_until_owning(2)
        talk.ask(first_beat(group, "two", instance_id="i"))
        one.beat(instance_id="i")
        talk.ask(beat(group, "one", one.epoch, instance_id="j"))
        one.beat()
        one.leave(LEAVING_FOR_A_WHILE, instance_id="j")
        one.leave(LEAVING_FOR_A_WHILE)
        one.leave(LEAVING_FOR_A_WHILE, instance_id="i")
        one.leave(LEAVING_FOR_A_WHILE, instance_id="i")
        talk.ask(beat(group, "one", one.epoch))
        talk.ask(beat(group, "one", one.epoch, instance_id="i"))
        three = Consumer(talk, group, "three").join(instance_id="i")
        talk.ask(beat(group, "one", one.epoch, instance_id="i"))
        talk.ask(beat(group, "one", LEAVING, instance_id="i"))
        talk.ask(beat(group, "three", three.epoch, instance_id="i"))
        three.leave(LEAVING, instance_id="i")
        talk.ask(first_beat(group, "three", instance_id="i"))

    agree(coordinators, conversation)


@pytest.mark.parametrize("pattern", ["pl[a-z]+", "pl", ".*-no-such-topic", "^plain$", "(?i)PLAIN"])
def test_topics_by_a_pattern(coordinators: Sides, pattern: str) -> None:
    def conversation(talk: Talk) -> None:
        group = f"pattern-{pattern}"
        one = Consumer(talk, group, "one")
        one.join(topics=None, subscribed_topic_regex=pattern)
        if pattern in ("pl[a-z]+", "^plain$", "(?i)PLAIN"):
            one.beat_until_owning(2)
        one.beat()
        talk.ask(beat(group, "one", one.epoch, subscribed_topic_regex="("))
        one.beat(subscribed_topic_regex="", topics=[PLAIN])
        one.beat_until_owning(2)

    agree(coordinators, conversation)


def test_a_classic_group_in_the_way(coordinators: Sides) -> None:
    """One whose members do not speak of consumers stays what it is; others move over."""

    def conversation(talk: Talk) -> None:
        first_member(talk, "connect", protocol_type="connect")
        talk.ask_in_all_versions(first_beat("connect", "one"))
        talk.ask_in_all_versions(beat("connect", "one", 1))
        unreadable = first_member(talk, "unreadable-848", metadata=b"\x00")
        talk.ask_in_all_versions(first_beat("unreadable-848", "one"))
        talk.ask(heartbeat("unreadable-848", unreadable.generation, unreadable.member_id))
        talk.ask(join("two-848-taken", "nobody"))

    agree(coordinators, conversation)


def test_classic_requests_to_a_consumer_group(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        group = "classic-to-848"
        Consumer(talk, group, "one").join().beat_until_owning(2)
        talk.ask_in_all_versions(join(group, "nobody"))
        talk.ask_in_all_versions(join(group, protocol_type="connect"))
        talk.ask_in_all_versions(join(group, metadata=b"\x00"))
        talk.ask_in_all_versions(join(group, protocols=[]))
        talk.ask_in_all_versions(heartbeat(group, 1, "one"))
        talk.ask_in_all_versions(heartbeat(group, 1, "nobody"))
        talk.ask_in_all_versions(leave(group, "one", 0))
        talk.ask_in_all_versions(leave(group, "nobody"))
        talk.ask_in_all_versions(leave(group, "one"))

    agree(coordinators, conversation)


def test_a_topic_deleted_while_assigned(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        create(talk.side, "doomed", 3)
        group = "doomed-848"
        talk.name(talk.side.topic_id("doomed"), "doomed's id")
        one = Consumer(talk, group, "one").join(topics=["doomed", PLAIN]).beat_until_owning(5)
        talk.side.ask(DeleteTopicsRequest(topic_names=["doomed"], timeout_ms=10_000), 5)
        one.beat_until_owning(2)
        one.beat()

    agree(coordinators, conversation)
