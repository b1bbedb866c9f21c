"""Transactions, right and wrong, in both of their versions (KIP-890) and every API version."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.same.batches import batch
from tests.conformance.same.conftest import PLAIN, create
from tests.conformance.same.consumers import Consumer
from tests.conformance.same.groups import first_member
from tests.conformance.same.offsets import fetched
from tests.conformance.same.requests import fetch, list_offsets, produce
from tests.conformance.same.sides import Sides, can_carry
from tests.conformance.same.talk import Talk, agree
from tests.conformance.same.transactions import Producer, init, marker, new_producer

from barnabas.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest

pytestmark = pytest.mark.peer

LONGEST_MS = 900_000

ODD_INITS: dict[str, dict[str, Any]] = {
    "no_id": {"transactional_id": ""},
    "timeout_zero": {"timeout_ms": 0},
    "timeout_negative": {"timeout_ms": -1},
    "timeout_too_long": {"timeout_ms": LONGEST_MS + 1},
    "id_without_epoch": {"producer_id": 1},
    "epoch_without_id": {"epoch": 1},
    "negative_id_and_epoch": {"producer_id": -2, "epoch": -2},
    "no_id_and_no_epoch": {"transactional_id": "", "epoch": 1},
    "timeout_of_an_idempotent_producer": {"transactional_id": None, "timeout_ms": -1},
}


@pytest.mark.parametrize("case", ODD_INITS)
def test_an_odd_init(coordinators: Sides, case: str) -> None:
    fields = {"transactional_id": f"odd-{case}"} | ODD_INITS[case]
    agree(coordinators, lambda talk: talk.ask_in_all_versions(init(**fields)))


@pytest.mark.parametrize("version", range(6))
def test_a_producer_begins_again(coordinators: Sides, version: int) -> None:
    """A new epoch each time; the old ones are fenced."""

    def conversation(talk: Talk) -> None:
        name = f"again-{version}"
        first = new_producer(talk, name, version=version)
        second = new_producer(talk, name, version=version)
        talk.ask(first.end(True), min(version, 4))
        talk.ask(second.end(True), min(version, 4))
        if version < 3:
            return
        bumped = talk.ask(second.init(), version)
        talk.ask(second.init(), version)
        talk.ask(first.init(), version)
        now = second.but(epoch=bumped.producer_epoch)
        talk.ask(now.but(epoch=now.epoch + 1).init(), version)
        talk.ask(now.but(producer_id=now.producer_id + 4711).init(), version)
        talk.ask(Producer(f"{name}-unknown", now.producer_id, 0).init(), version)

    agree(coordinators, conversation)


def in_all_versions(
    talk: Talk, build: Callable[[int], Any], *, start: int = 0, end: int = 99
) -> None:
    for version in talk.side.served(build(-1).API_KEY):
        if start <= version <= end and can_carry(request := build(version), version):
            talk.ask_patiently(request, version)


def strangers(producer: Producer) -> list[Producer]:
    """Who is not quite this producer."""
    return [
        producer.but(transactional_id="unknown-to-both"),
        producer.but(transactional_id=""),
        producer.but(producer_id=producer.producer_id + 4711),
        producer.but(producer_id=-1),
        producer.but(epoch=producer.epoch + 1),
        producer.but(epoch=producer.epoch - 1),
        producer.but(epoch=-1),
    ]


def test_adding_partitions(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        new_producer(talk, "adding")
        one = new_producer(talk, "adding")
        for who in strangers(one):
            in_all_versions(talk, lambda version, who=who: who.add(version, PLAIN))
        in_all_versions(talk, lambda version: one.add(version, "unknown-to-both"))
        in_all_versions(talk, lambda version: one.add(version, "unknown-to-both", PLAIN))
        in_all_versions(talk, lambda version: one.add(version, PLAIN, partitions=[0, 99]))
        in_all_versions(talk, lambda version: one.add(version))
        in_all_versions(talk, lambda version: one.add(version, PLAIN, verify=True), start=4)
        in_all_versions(talk, lambda version: one.add(version, PLAIN))
        in_all_versions(talk, lambda version: one.add(version, PLAIN, verify=True), start=4)
        in_all_versions(
            talk, lambda version: one.add(version, PLAIN, partitions=[0, 1], verify=True), start=4
        )
        for who in strangers(one):
            in_all_versions(
                talk, lambda version, who=who: who.add(version, PLAIN, verify=True), start=4
            )
        describe(talk, "adding")
        talk.ask(one.end(False), 4)

    agree(coordinators, conversation)


def test_adding_a_group(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        new_producer(talk, "adding-group")
        one = new_producer(talk, "adding-group")
        for who in strangers(one):
            in_all_versions(talk, lambda _, who=who: who.add_group("g"))
        in_all_versions(talk, lambda _: one.add_group("g"))
        in_all_versions(talk, lambda _: one.add_group(""))
        describe(talk, "adding-group")
        talk.ask(one.end(False), 4)

    agree(coordinators, conversation)


def describe(talk: Talk, *transactional_ids: str) -> None:
    talk.ask_patiently(DescribeTransactionsRequest(transactional_ids=list(transactional_ids)))


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_ending_a_transaction(coordinators: Sides, version: int, committed: bool) -> None:
    """Before it began, open, again, the other way, and by strangers."""

    def conversation(talk: Talk) -> None:
        name = f"ending-{version}-{committed}"
        new_producer(talk, name)
        one = new_producer(talk, name)
        talk.ask_patiently(one.end(committed), version)
        one = new_producer(talk, name)
        describe(talk, name)
        for who in strangers(one):
            talk.ask_patiently(who.end(committed), version)
        talk.ask(one.add(3, PLAIN), 3)
        for who in strangers(one):
            talk.ask_patiently(who.end(committed), version)
        describe(talk, name)
        ended = talk.ask_patiently(one.end(committed), version)
        describe(talk, name)
        talk.ask_patiently(one.end(committed), version)
        talk.ask_patiently(one.end(not committed), version)
        for who in strangers(one):
            talk.ask_patiently(who.end(committed), version)
        if version >= 5:
            now = one.but(epoch=ended.producer_epoch)
            talk.ask_patiently(now.end(committed), version)
            talk.ask_patiently(now.end(not committed), version)
            talk.ask_patiently(one.end(committed), version)
        describe(talk, name)

    agree(coordinators, conversation)


def test_beginning_again_aborts_what_is_open(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        one = new_producer(talk, "left-open")
        talk.ask(one.add(3, PLAIN), 3)
        two = new_producer(talk, "left-open")
        describe(talk, "left-open")
        talk.ask(one.add(3, PLAIN), 3)
        talk.ask(one.end(True), 4)
        talk.ask(two.add(3, PLAIN), 3)
        talk.ask_patiently(two.init())
        describe(talk, "left-open")

    agree(coordinators, conversation)


def produced_in(talk: Talk, producer: Producer, topic: str, sequence: int, version: int) -> None:
    by_id = version >= 13
    topic_id = talk.side.topic_id(topic) if by_id else bytes(16)
    talk.ask_patiently(producer.produce(topic, sequence, topic_id=topic_id), version)


@pytest.mark.parametrize("version", range(3, 14))
def test_producing_without_having_added(coordinators: Sides, version: int) -> None:
    """Refused up to v11; v12 adds by itself."""

    def conversation(talk: Talk) -> None:
        topic = f"not-added-{version}"
        create(talk.side, topic)
        one = new_producer(talk, topic)
        produced_in(talk, one, topic, 0, version)
        describe(talk, topic)
        talk.ask(one.add(3, topic), 3)
        produced_in(talk, one, topic, 0, version)
        produced_in(talk, one, topic, 2, version)
        produced_in(talk, one, topic, 9, version)
        for who in strangers(one):
            produced_in(talk, who, topic, 4, version)
        described_producers(talk, topic)
        talk.ask(list_offsets(topic, -1, isolation_level=1), 5)
        talk.ask(list_offsets(topic, -1), 5)
        ended = talk.ask_patiently(one.end(True), 5 if version >= 12 else 4)
        # The answer to a commit may come before its marker is visible.
        talk.ask_until(
            lambda: list_offsets(topic, -1, isolation_level=1),
            5,
            lambda answer: answer.topics[0].partitions[0].offset > 0,
        )
        described_producers(talk, topic)
        produced_in(talk, one, topic, 4, version)
        if version >= 12:
            now = one.but(epoch=ended.producer_epoch)
            produced_in(talk, now, topic, 4, version)
            produced_in(talk, now, topic, 0, version)
        describe(talk, topic)

    agree(coordinators, conversation)


def described_producers(talk: Talk, topic: str) -> None:
    asked = TopicRequest(name=topic, partition_indexes=[0])
    talk.ask(DescribeProducersRequest(topics=[asked]))


@pytest.mark.parametrize("case", ["not_transactional", "other_producer", "without_id", "mixed"])
def test_producing_what_does_not_fit(coordinators: Sides, case: str) -> None:
    def conversation(talk: Talk) -> None:
        topic = f"unfit-{case}"
        create(talk.side, topic)
        one = new_producer(talk, topic)
        records: Any = {"producer_id": one.producer_id, "producer_epoch": one.epoch}
        name: str | None = topic
        match case:
            case "not_transactional":
                records |= {"base_sequence": 0}
            case "other_producer":
                records |= {"producer_id": 999_999, "base_sequence": 0, "transactional": True}
            case "without_id":
                records |= {"base_sequence": 0, "transactional": True}
                name = None
            case "mixed":
                records |= {"base_sequence": 0, "transactional": True}
        for version in range(3, 13):
            talk.ask_patiently(produce(topic, batch(**records), transactional_id=name), version)
        talk.ask(produce(topic, batch()), 11)
        if case == "mixed":
            records |= {"transactional": False, "base_sequence": 1}
            talk.ask(produce(topic, batch(**records)), 11)

    agree(coordinators, conversation)


def test_aborted_records_are_listed(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        topic = "aborted"
        create(talk.side, topic)
        one = new_producer(talk, topic)
        for commits in False, True, False:
            produced_in(talk, one, topic, 0, 12)
            ended = talk.ask_patiently(one.end(commits), 5)
            one = one.but(epoch=ended.producer_epoch)
        produced_in(talk, one, topic, 0, 12)
        talk.ask_until(
            lambda: list_offsets(topic, -1, isolation_level=1),
            5,
            lambda answer: answer.topics[0].partitions[0].offset >= 9,
        )
        for isolation in 0, 1:
            for offset in 0, 4, 9:
                talk.ask(fetch(topic, offset=offset, isolation_level=isolation), 11)
        described_producers(talk, topic)
        talk.ask_patiently(one.end(False), 5)

    agree(coordinators, conversation)


def test_offsets_in_a_transaction(coordinators: Sides) -> None:
    """Seen when it commits, unstable before, gone when it aborts."""

    def conversation(talk: Talk) -> None:
        group = "txn-offsets"
        one = new_producer(talk, group)
        for number, commits in enumerate((True, False)):
            talk.ask_patiently(one.commit_offsets(group, 10 + number), 5)
            describe(talk, group)
            for stable in False, True:
                for version in range(7, 11):
                    asked = fetched(talk.side, version, group, require_stable=stable)
                    talk.ask(asked, version)
                asked = fetched(talk.side, 9, group, topics=None, require_stable=stable)
                talk.ask(asked, 9)
            ended = talk.ask_patiently(one.end(commits), 5)
            one = one.but(epoch=ended.producer_epoch)
            talk.ask_until(
                lambda: fetched(talk.side, 9, group, require_stable=True),
                9,
                lambda answer: answer.groups[0].topics[0].partitions[0].error_code == 0,
            )

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", range(6))
def test_offsets_of_a_transaction_that_are_refused(coordinators: Sides, version: int) -> None:
    def conversation(talk: Talk) -> None:
        group = f"txn-refused-{version}"
        new_producer(talk, group)
        one = new_producer(talk, group)

        def ask(who: Producer, in_group: str = group, **fields: Any) -> None:
            request = who.commit_offsets(in_group, **fields)
            if can_carry(request, version):
                talk.ask_patiently(request, version)

        ask(one)
        talk.ask(one.add_group(group), 3)
        ask(one)
        for who in strangers(one):
            ask(who)
        ask(one, topic="unknown-to-both")
        ask(one, partitions=[99, 0])
        ask(one, metadata="m" * 5000)
        ask(one, metadata=None)
        ask(one, offset=-1)
        ask(one, in_group="")
        ask(one, member_id="nobody", generation=1)
        ask(one, member_id="nobody")
        ask(one, generation=1)
        ask(one, instance="nobody")
        describe(talk, group)
        talk.ask_patiently(one.end(True), 4)

    agree(coordinators, conversation)


@pytest.mark.parametrize("version", range(3, 6))
def test_offsets_of_a_transaction_by_members(coordinators: Sides, version: int) -> None:
    """KIP-447: the group's generation is checked too."""

    def conversation(talk: Talk) -> None:
        group = f"txn-members-{version}"
        member = first_member(talk, group, instance="i")
        consumers = f"txn-848-{version}"
        consumer = Consumer(talk, consumers, "one").join()
        one = new_producer(talk, group)
        talk.ask(one.add_group(group), 3)
        talk.ask_patiently(one.add_group(consumers), 3)

        def ask(in_group: str, **fields: Any) -> None:
            request = one.commit_offsets(in_group, **fields)
            talk.ask_patiently(request, version)

        known = {"member_id": member.member_id, "generation": member.generation}
        for changed in (
            {},
            {"instance": "i"},
            {"instance": "j"},
            {"generation": 7},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": "nobody", "instance": "i"},
            {"member_id": "", "generation": -1},
        ):
            ask(group, **(known | changed))
        for changed in (
            {},
            {"generation": 7},
            {"generation": -1},
            {"member_id": "nobody"},
            {"member_id": "", "generation": -1},
        ):
            ask(consumers, **({"member_id": "one", "generation": consumer.epoch} | changed))
        talk.ask_patiently(one.end(False), 4)

    agree(coordinators, conversation)


def test_markers_written_by_a_client(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        topic = "markers"
        create(talk.side, topic)
        one = new_producer(talk, topic)
        for each in (
            marker(4711, 0, "unknown-to-both"),
            marker(4711, 0, topic, partitions=[0, 99]),
            marker(4711, 3, topic, coordinator_epoch=5),
            marker(4711, 3, topic, coordinator_epoch=4),
            marker(4711, 2, topic, coordinator_epoch=5),
            marker(4711, 3, topic, coordinator_epoch=5, transaction_version=2),
            marker(4711, 4, topic, coordinator_epoch=5, transaction_version=2, committed=False),
            marker(-1, -1, topic),
            marker(4712, 0, topic, transaction_version=7),
            marker(4712, 0, topic, partitions=[]),
        ):
            talk.ask_in_all_versions(each)
            described_producers(talk, topic)
        produced_in(talk, one, topic, 0, 12)
        described_producers(talk, topic)
        # As an operator ends a hanging transaction from outside.
        talk.ask(marker(one.producer_id, one.epoch, topic, committed=False), 1)
        described_producers(talk, topic)
        talk.ask_patiently(one.end(True), 5)

    agree(coordinators, conversation)


def test_describing_and_listing_transactions(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        describe(talk, "unknown-to-both")
        describe(talk, "")
        describe(talk)
        for name in "listed-a", "listed-b":
            one = new_producer(talk, name, f"producer {name}")
            if name == "listed-b":
                talk.ask(one.add(3, PLAIN, partitions=[0, 1]), 3)
        describe(talk, "listed-a", "listed-b", "unknown-to-both", "listed-a")
        mine = {"transactional_id_pattern": "listed-.*"}
        for fields in (
            mine,
            {"transactional_id_pattern": "listed-"},
            {"transactional_id_pattern": "["},
            {"transactional_id_pattern": ""} | {"producer_id_filters": [999_999]},
            mine | {"state_filters": ["Ongoing"]},
            mine | {"state_filters": ["ongoing"]},
            mine | {"state_filters": ["Empty", "NoSuchState", ""]},
            mine | {"state_filters": ["NoSuchState"]},
            mine | {"state_filters": ["Dead", "PrepareEpochFence", "CompleteAbort"]},
            mine | {"duration_filter": 0},
            mine | {"duration_filter": 1_000_000},
            mine | {"duration_filter": -7},
        ):
            talk.ask(ListTransactionsRequest(**fields))
        for fields in (
            {"producer_id_filters": [one.producer_id]},
            {"producer_id_filters": [one.producer_id, -1], "state_filters": ["Ongoing"]},
            {"producer_id_filters": [-1]},
        ):
            talk.ask_in_all_versions(ListTransactionsRequest(**fields))
        talk.ask_patiently(one.end(False), 4)

    agree(coordinators, conversation)
