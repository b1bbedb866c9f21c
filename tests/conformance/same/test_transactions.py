"""Transactions, right and wrong, in both of their versions (KIP-890) and every API version:
producers, partitions, ends."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.same.conftest import PLAIN
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree
from tests.conformance.same.transactions import (
    BETWEEN_BROKERS,
    Producer,
    describe,
    in_all_versions,
    init,
    new_producer,
    strangers,
)

from barnabas.wire.messages.transaction_descriptions import ListTransactionsRequest
from barnabas.wire.messages.transactions import AddPartitionsToTxnRequest
from barnabas.wire.schema import Message

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


def test_adding_partitions(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        new_producer(talk, "adding")
        one = new_producer(talk, "adding")
        for who in strangers(one):
            in_all_versions(talk, adding(who, PLAIN))
        in_all_versions(talk, adding(one, "unknown-to-both"))
        in_all_versions(talk, adding(one, "unknown-to-both", PLAIN))
        in_all_versions(talk, adding(one, PLAIN, partitions=[0, 99]))
        in_all_versions(talk, adding(one))
        in_all_versions(talk, adding(one, PLAIN, verify=True), start=BETWEEN_BROKERS)
        in_all_versions(talk, adding(one, PLAIN))
        both = adding(one, PLAIN, partitions=[0, 1], verify=True)
        in_all_versions(talk, both, start=BETWEEN_BROKERS)
        for who in one, *strangers(one):
            in_all_versions(talk, adding(who, PLAIN, verify=True), start=BETWEEN_BROKERS)
        describe(talk, "adding")
        talk.ask(one.end(False), 4)

    agree(coordinators, conversation)


def test_adding_partitions_to_several_transactions(coordinators: Sides) -> None:
    """As brokers do for each other: one that is right, one that is not, one to verify."""

    def conversation(talk: Talk) -> None:
        one = new_producer(talk, "several-one", "one")
        two = new_producer(talk, "several-two", "two")
        asked = [one.add(4, PLAIN), two.but(epoch=5).add(4, PLAIN), two.add(4, PLAIN, verify=True)]
        together = [transaction for each in asked for transaction in each.transactions]
        talk.ask_in_all_versions(AddPartitionsToTxnRequest(transactions=together[:2]))
        talk.ask_in_all_versions(AddPartitionsToTxnRequest(transactions=together))
        describe(talk, "several-one", "several-two")
        talk.ask(one.end(False), 4)

    agree(coordinators, conversation)


def adding(who: Producer, *topics: str, **fields: Any) -> Callable[[int], Message]:
    return lambda version: who.add(version, *topics, **fields)


def test_adding_a_group(coordinators: Sides) -> None:
    def conversation(talk: Talk) -> None:
        new_producer(talk, "adding-group")
        one = new_producer(talk, "adding-group")
        for who in strangers(one):
            talk.ask_in_all_versions(who.add_group("g"))
        talk.ask_in_all_versions(one.add_group("g"))
        talk.ask_in_all_versions(one.add_group(""))
        describe(talk, "adding-group")
        talk.ask(one.end(False), 4)

    agree(coordinators, conversation)


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
        mine: dict[str, Any] = {"transactional_id_pattern": "listed-.*"}
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
