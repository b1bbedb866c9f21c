"""Both brokers with the same topics."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.dialog import is_settled
from tests.conformance.side_by_side.requests import list_offsets, produce
from tests.conformance.side_by_side.sides import Side, Sides
from tests.wait import wait_until

from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.schema import Message

MANY_NAMES = [f"any-{number}" for number in range(500)]
"""Names for every partition of an internal topic."""

READINESS: list[tuple[Message, int]] = [
    (FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]), 4),
    (DescribeGroupsRequest(groups=MANY_NAMES), 0),
    (FindCoordinatorRequest(key_type=1, coordinator_keys=["any"]), 4),
    (DescribeTransactionsRequest(transactional_ids=MANY_NAMES), 0),
    (InitProducerIdRequest(transactional_id=None), 4),
]
"""Requests that succeed once the coordinators have loaded every partition of their topics."""

PLAIN = "plain"
"""A topic of two partitions; the first has three batches of two records, a minute apart."""


@pytest.fixture(scope="session")
def sides(broker: BrokerProcess, kafka: PeerBroker) -> Iterator[Sides]:
    both = [Side("Kafka", kafka), Side("Barnabas", broker)]
    for side in both:
        create_topic(side, PLAIN, 2)
        for minute in range(3):
            side.send(produce(PLAIN, batch(2, minute=minute)), 9)
    yield both
    for side in both:
        side.close()


@pytest.fixture(scope="session")
def coordinators(sides: Sides) -> Sides:
    """Both brokers, with coordinators for any group and any transaction."""
    for side in sides:
        wait_until_ready(side)
    return sides


def wait_until_ready(side: Side) -> None:
    def is_available(request: Message, version: int) -> bool:
        return is_settled(side.send(request, version))

    for request, version in READINESS:
        wait_until(partial(is_available, request, version), f"{type(request).__name__} succeeds")


def create_topic(side: Side, topic: str, partitions: int = 1) -> None:
    """Creates a topic and waits until all its partitions have leaders."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    side.send(CreateTopicsRequest(topics=[new]), 7)
    wait_until(lambda: have_leaders(side, topic, partitions), f"{topic} has leaders", poll_s=0.01)


def have_leaders(side: Side, topic: str, partitions: int) -> bool:
    responses: list[Any] = [
        side.send(list_offsets(topic, -1, partition=index), 5) for index in range(partitions)
    ]
    return all(response.topics[0].partitions[0].error_code == 0 for response in responses)
