"""Both brokers with the same topics in them."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker, wait_until
from tests.conformance.same.batches import batch
from tests.conformance.same.requests import list_offsets, produce
from tests.conformance.same.sides import Side, Sides

from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest

GROUP, TRANSACTION = 0, 1
"""Kinds of keys that have a coordinator."""

PLAIN = "plain"
"""Two partitions; in the first three batches of two records, a minute apart."""


@pytest.fixture(scope="session")
def sides(broker: BrokerProcess, kafka: PeerBroker) -> Iterator[Sides]:
    both = [Side("Kafka", kafka), Side("Barnabas", broker)]
    for side in both:
        create(side, PLAIN, 2)
        for minute in range(3):
            side.ask(produce(PLAIN, batch(2, minute=minute)), 9)
    yield both
    for side in both:
        side.close()


@pytest.fixture(scope="session")
def coordinators(sides: Sides) -> Sides:
    """Both brokers, ready to coordinate any group and any transaction."""
    for side in sides:
        for key_type, listing in (GROUP, ListGroupsRequest()), (TRANSACTION, ListTransactionsRequest()):
            find = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["any"])
            wait_until(lambda: side.ask(find, 6).coordinators[0].error_code == 0, "it is found")
            wait_until(lambda: side.ask(listing, 0).error_code == 0, "all partitions are loaded")
    return sides


def create(side: Side, topic: str, partitions: int = 1) -> None:
    """A topic whose partitions all answer."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    side.ask(CreateTopicsRequest(topics=[new]), 7)
    wait_until(lambda: is_led(side, topic, partitions), f"{topic} is led", step_s=0.01)


def is_led(side: Side, topic: str, partitions: int) -> bool:
    answers: list[Any] = [
        side.ask(list_offsets(topic, -1, partition=index), 5) for index in range(partitions)
    ]
    return all(answer.topics[0].partitions[0].error_code == 0 for answer in answers)
