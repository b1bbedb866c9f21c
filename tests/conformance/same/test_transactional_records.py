"""Records in transactions: producing, aborting, and markers from outside."""

from typing import Any

import pytest
from tests.conformance.same.batches import batch
from tests.conformance.same.conftest import create
from tests.conformance.same.requests import fetch, list_offsets, produce
from tests.conformance.same.sides import Sides
from tests.conformance.same.talk import Talk, agree
from tests.conformance.same.transactions import (
    Producer,
    describe,
    marker,
    new_producer,
    strangers,
)

from barnabas.wire.messages.transaction_descriptions import DescribeProducersRequest, TopicRequest

pytestmark = pytest.mark.peer


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
            if who.producer_id >= 0:
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
        describe(talk, topic)
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


@pytest.mark.parametrize(
    "case", ["not_transactional", "other_producer", "no_producer", "without_id", "mixed"]
)
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
            case "no_producer":
                records = {"producer_id": -1, "transactional": True}
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


@pytest.mark.parametrize("version", [9, 11, 12])
def test_a_zombie_does_not_disturb_who_replaced_it(coordinators: Sides, version: int) -> None:
    def conversation(talk: Talk) -> None:
        topic = f"zombie-{version}"
        create(talk.side, topic)
        zombie = new_producer(talk, topic)
        produced_in(talk, zombie, topic, 0, 12)
        ended = talk.ask_patiently(zombie.end(True), 5)
        living = zombie.but(epoch=ended.producer_epoch)
        produced_in(talk, living, topic, 0, 12)
        for each in zombie, zombie.but(transactional_id="unknown-to-both"):
            produced_in(talk, each, topic, 2, version)
            produced_in(talk, each, topic, 0, version)
        produced_in(talk, living, topic, 2, version)
        talk.ask_patiently(living.end(True), 5)

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
