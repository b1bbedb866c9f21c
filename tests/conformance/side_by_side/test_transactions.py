"""Transactions in both protocol versions (KIP-890) and every API version: producer ids, partitions
and ends, with valid and invalid requests.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.conformance.side_by_side.conftest import PLAIN
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.sides import Sides
from tests.conformance.side_by_side.transactions import (
    FIRST_BATCHED_ADD,
    Producer,
    describe,
    in_all_versions,
    init,
    invalid_producers,
    new_producer,
)

from barnabas.wire.messages.transaction_descriptions import ListTransactionsRequest
from barnabas.wire.messages.transactions import AddPartitionsToTxnRequest
from barnabas.wire.schema import Message

pytestmark = pytest.mark.peer

MAX_TIMEOUT_MS = 900_000

INVALID_INITS: dict[str, dict[str, Any]] = {
    "no_id": {"transactional_id": ""},
    "timeout_zero": {"timeout_ms": 0},
    "timeout_negative": {"timeout_ms": -1},
    "timeout_too_long": {"timeout_ms": MAX_TIMEOUT_MS + 1},
    "id_without_epoch": {"producer_id": 1},
    "epoch_without_id": {"epoch": 1},
    "negative_id_and_epoch": {"producer_id": -2, "epoch": -2},
    "no_id_and_no_epoch": {"transactional_id": "", "epoch": 1},
    "timeout_of_an_idempotent_producer": {"transactional_id": None, "timeout_ms": -1},
}


@pytest.mark.parametrize("case", INVALID_INITS)
def test_an_invalid_init(coordinators: Sides, case: str) -> None:
    fields = {"transactional_id": f"odd-{case}"} | INVALID_INITS[case]
    assert_same_dialog(coordinators, lambda dialog: dialog.send_in_all_versions(init(**fields)))


@pytest.mark.parametrize("version", range(6))
def test_a_producer_initializes_again(coordinators: Sides, version: int) -> None:
    """It gets a new epoch, and the old one is fenced."""

    def script(dialog: Dialog) -> None:
        name = f"again-{version}"
        first = new_producer(dialog, name, version=version)
        second = new_producer(dialog, name, version=version)
        dialog.send(first.end(True), min(version, 4))
        dialog.send(second.end(True), min(version, 4))
        if version < 3:
            return
        bumped = dialog.send(second.init(), version)
        dialog.send(second.init(), version)
        dialog.send(first.init(), version)
        now = second.with_changes(epoch=bumped.producer_epoch)
        dialog.send(now.with_changes(epoch=now.epoch + 1).init(), version)
        dialog.send(now.with_changes(producer_id=now.producer_id + 4711).init(), version)
        dialog.send(Producer(f"{name}-unknown", now.producer_id, 0).init(), version)

    assert_same_dialog(coordinators, script)


def test_adding_partitions(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        new_producer(dialog, "adding")
        one = new_producer(dialog, "adding")
        for producer in invalid_producers(one):
            in_all_versions(dialog, add_request(producer, PLAIN))
        in_all_versions(dialog, add_request(one, "unknown-to-both"))
        in_all_versions(dialog, add_request(one, "unknown-to-both", PLAIN))
        in_all_versions(dialog, add_request(one, PLAIN, partitions=[0, 99]))
        in_all_versions(dialog, add_request(one))
        in_all_versions(dialog, add_request(one, PLAIN, verify=True), start=FIRST_BATCHED_ADD)
        in_all_versions(dialog, add_request(one, PLAIN))
        both = add_request(one, PLAIN, partitions=[0, 1], verify=True)
        in_all_versions(dialog, both, start=FIRST_BATCHED_ADD)
        for producer in one, *invalid_producers(one):
            in_all_versions(
                dialog, add_request(producer, PLAIN, verify=True), start=FIRST_BATCHED_ADD
            )
        describe(dialog, "adding")
        dialog.send(one.end(False), 4)

    assert_same_dialog(coordinators, script)


def test_adding_partitions_to_several_transactions(coordinators: Sides) -> None:
    """As brokers send them: a valid one, an invalid one, and one to verify."""

    def script(dialog: Dialog) -> None:
        one = new_producer(dialog, "several-one", "one")
        two = new_producer(dialog, "several-two", "two")
        requested = [
            one.add(4, PLAIN),
            two.with_changes(epoch=5).add(4, PLAIN),
            two.add(4, PLAIN, verify=True),
        ]
        together = [transaction for request in requested for transaction in request.transactions]
        dialog.send_in_all_versions(AddPartitionsToTxnRequest(transactions=together[:2]))
        dialog.send_in_all_versions(AddPartitionsToTxnRequest(transactions=together))
        describe(dialog, "several-one", "several-two")
        dialog.send(one.end(False), 4)

    assert_same_dialog(coordinators, script)


def add_request(producer: Producer, *topics: str, **fields: Any) -> Callable[[int], Message]:
    return lambda version: producer.add(version, *topics, **fields)


def test_adding_a_group(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        new_producer(dialog, "adding-group")
        one = new_producer(dialog, "adding-group")
        for producer in invalid_producers(one):
            dialog.send_in_all_versions(producer.add_group("g"))
        dialog.send_in_all_versions(one.add_group("g"))
        dialog.send_in_all_versions(one.add_group(""))
        describe(dialog, "adding-group")
        dialog.send(one.end(False), 4)

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize("committed", [True, False], ids=["commit", "abort"])
def test_ending_a_transaction(coordinators: Sides, version: int, committed: bool) -> None:
    """Before it begins, when it is open, twice, both ways, and by invalid producers."""

    def script(dialog: Dialog) -> None:
        name = f"ending-{version}-{committed}"
        new_producer(dialog, name)
        one = new_producer(dialog, name)
        dialog.send_with_retries(one.end(committed), version)
        one = new_producer(dialog, name)
        describe(dialog, name)
        for producer in invalid_producers(one):
            dialog.send_with_retries(producer.end(committed), version)
        dialog.send(one.add(3, PLAIN), 3)
        for producer in invalid_producers(one):
            dialog.send_with_retries(producer.end(committed), version)
        describe(dialog, name)
        ended = dialog.send_with_retries(one.end(committed), version)
        describe(dialog, name)
        dialog.send_with_retries(one.end(committed), version)
        dialog.send_with_retries(one.end(not committed), version)
        for producer in invalid_producers(one):
            dialog.send_with_retries(producer.end(committed), version)
        if version >= 5:
            now = one.with_changes(epoch=ended.producer_epoch)
            dialog.send_with_retries(now.end(committed), version)
            dialog.send_with_retries(now.end(not committed), version)
            dialog.send_with_retries(one.end(committed), version)
        describe(dialog, name)

    assert_same_dialog(coordinators, script)


def test_a_new_init_aborts_the_open_transaction(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        one = new_producer(dialog, "left-open")
        dialog.send(one.add(3, PLAIN), 3)
        two = new_producer(dialog, "left-open")
        describe(dialog, "left-open")
        dialog.send(one.add(3, PLAIN), 3)
        dialog.send(one.end(True), 4)
        dialog.send(two.add(3, PLAIN), 3)
        dialog.send_with_retries(two.init())
        describe(dialog, "left-open")

    assert_same_dialog(coordinators, script)


def test_describing_and_listing_transactions(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        describe(dialog, "unknown-to-both")
        describe(dialog, "")
        describe(dialog)
        for name in "listed-a", "listed-b":
            one = new_producer(dialog, name, f"producer {name}")
            if name == "listed-b":
                dialog.send(one.add(3, PLAIN, partitions=[0, 1]), 3)
        describe(dialog, "listed-a", "listed-b", "unknown-to-both", "listed-a")
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
            dialog.send(ListTransactionsRequest(**fields))
        for fields in (
            {"producer_id_filters": [one.producer_id]},
            {"producer_id_filters": [one.producer_id, -1], "state_filters": ["Ongoing"]},
            {"producer_id_filters": [-1]},
        ):
            dialog.send_in_all_versions(ListTransactionsRequest(**fields))
        dialog.send_with_retries(one.end(False), 4)

    assert_same_dialog(coordinators, script)
