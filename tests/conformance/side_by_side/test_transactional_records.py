"""Records in transactions: producing, aborting, and markers of clients."""

from typing import Any

import pytest
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.conftest import create_topic
from tests.conformance.side_by_side.dialog import Dialog, assert_same_dialog
from tests.conformance.side_by_side.requests import fetch, list_offsets, produce
from tests.conformance.side_by_side.sides import Sides
from tests.conformance.side_by_side.transactions import (
    Producer,
    describe,
    invalid_producers,
    marker,
    new_producer,
)

from barnabas.wire.messages.transaction_descriptions import DescribeProducersRequest, TopicRequest

pytestmark = pytest.mark.peer


def produce_in_transaction(
    dialog: Dialog, producer: Producer, topic: str, sequence: int, version: int
) -> None:
    by_id = version >= 13
    topic_id = dialog.side.topic_id(topic) if by_id else bytes(16)
    dialog.send_with_retries(producer.produce(topic, sequence, topic_id=topic_id), version)


@pytest.mark.parametrize("version", range(3, 14))
def test_producing_before_adding_the_partition(coordinators: Sides, version: int) -> None:
    """Rejected up to v11; v12 adds the partition."""

    def script(dialog: Dialog) -> None:
        topic = f"not-added-{version}"
        create_topic(dialog.side, topic)
        one = new_producer(dialog, topic)
        produce_in_transaction(dialog, one, topic, 0, version)
        describe(dialog, topic)
        dialog.send(one.add(3, topic), 3)
        produce_in_transaction(dialog, one, topic, 0, version)
        produce_in_transaction(dialog, one, topic, 2, version)
        produce_in_transaction(dialog, one, topic, 9, version)
        for producer in invalid_producers(one):
            if producer.producer_id >= 0:
                produce_in_transaction(dialog, producer, topic, 4, version)
        describe_producers(dialog, topic)
        dialog.send(list_offsets(topic, -1, isolation_level=1), 5)
        dialog.send(list_offsets(topic, -1), 5)
        ended = dialog.send_with_retries(one.end(True), 5 if version >= 12 else 4)
        # The response to a commit may come before its marker is visible.
        dialog.send_until(
            lambda: list_offsets(topic, -1, isolation_level=1),
            5,
            lambda response: response.topics[0].partitions[0].offset > 0,
        )
        describe_producers(dialog, topic)
        describe(dialog, topic)
        produce_in_transaction(dialog, one, topic, 4, version)
        if version >= 12:
            now = one.with_changes(epoch=ended.producer_epoch)
            produce_in_transaction(dialog, now, topic, 4, version)
            produce_in_transaction(dialog, now, topic, 0, version)
        describe(dialog, topic)

    assert_same_dialog(coordinators, script)


def describe_producers(dialog: Dialog, topic: str) -> None:
    requested = TopicRequest(name=topic, partition_indexes=[0])
    dialog.send(DescribeProducersRequest(topics=[requested]))


@pytest.mark.parametrize(
    "case", ["not_transactional", "other_producer", "no_producer", "without_id", "mixed"]
)
def test_producing_batches_that_do_not_match_the_transaction(
    coordinators: Sides, case: str
) -> None:
    def script(dialog: Dialog) -> None:
        topic = f"unfit-{case}"
        create_topic(dialog.side, topic)
        one = new_producer(dialog, topic)
        records: Any = {"producer_id": one.producer_id, "producer_epoch": one.epoch}
        name: str | None = topic
        match case:
            case "not_transactional":
                records |= {"base_sequence": 0}
            case "other_producer":
                records |= {"producer_id": 999_999, "base_sequence": 0, "transactional": True}
            case "no_producer":
                records = {"producer_id": -1, "transactional": True}
            case "without_id":
                records |= {"base_sequence": 0, "transactional": True}
                name = None
            case "mixed":
                records |= {"base_sequence": 0, "transactional": True}
        for version in range(3, 13):
            dialog.send_with_retries(
                produce(topic, batch(**records), transactional_id=name), version
            )
        dialog.send(produce(topic, batch()), 11)
        if case == "mixed":
            records |= {"transactional": False, "base_sequence": 1}
            dialog.send(produce(topic, batch(**records)), 11)

    assert_same_dialog(coordinators, script)


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_zombie_does_not_affect_the_producer_that_replaced_it(
    coordinators: Sides, version: int
) -> None:
    def script(dialog: Dialog) -> None:
        topic = f"zombie-{version}"
        create_topic(dialog.side, topic)
        zombie = new_producer(dialog, topic)
        produce_in_transaction(dialog, zombie, topic, 0, 12)
        ended = dialog.send_with_retries(zombie.end(True), 5)
        living = zombie.with_changes(epoch=ended.producer_epoch)
        produce_in_transaction(dialog, living, topic, 0, 12)
        for old in zombie, zombie.with_changes(transactional_id="unknown-to-both"):
            produce_in_transaction(dialog, old, topic, 2, version)
            produce_in_transaction(dialog, old, topic, 0, version)
        produce_in_transaction(dialog, living, topic, 2, version)
        dialog.send_with_retries(living.end(True), 5)

    assert_same_dialog(coordinators, script)


def test_aborted_records_are_listed(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        topic = "aborted"
        create_topic(dialog.side, topic)
        one = new_producer(dialog, topic)
        for commits in False, True, False:
            produce_in_transaction(dialog, one, topic, 0, 12)
            ended = dialog.send_with_retries(one.end(commits), 5)
            one = one.with_changes(epoch=ended.producer_epoch)
        produce_in_transaction(dialog, one, topic, 0, 12)
        dialog.send_until(
            lambda: list_offsets(topic, -1, isolation_level=1),
            5,
            lambda response: response.topics[0].partitions[0].offset >= 9,
        )
        for isolation in 0, 1:
            for offset in 0, 4, 9:
                dialog.send(fetch(topic, offset=offset, isolation_level=isolation), 11)
        describe_producers(dialog, topic)
        dialog.send_with_retries(one.end(False), 5)

    assert_same_dialog(coordinators, script)


def test_markers_written_by_a_client(coordinators: Sides) -> None:
    def script(dialog: Dialog) -> None:
        topic = "markers"
        create_topic(dialog.side, topic)
        one = new_producer(dialog, topic)
        for request in (
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
            dialog.send_in_all_versions(request)
            describe_producers(dialog, topic)
        produce_in_transaction(dialog, one, topic, 0, 12)
        describe_producers(dialog, topic)
        # As an operator aborts a hanging transaction.
        dialog.send(marker(one.producer_id, one.epoch, topic, committed=False), 1)
        describe_producers(dialog, topic)
        dialog.send_with_retries(one.end(True), 5)

    assert_same_dialog(coordinators, script)
