"""Both brokers with the same topics in them."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from tests.conformance.brokers import BrokerProcess, PeerBroker
from tests.conformance.same.batches import batch
from tests.conformance.same.requests import list_offsets, produce
from tests.conformance.same.sides import Side, Sides
from tests.conformance.same.talk import is_settled
from tests.wait import wait_until

from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.groups import DescribeGroupsRequest
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from barnabas.wire.messages.transaction_descriptions import DescribeTransactionsRequest
from barnabas.wire.schema import Message

ENOUGH = [f"any-{number}" for number in range(500)]
"""Some for each partition of an internal topic."""

READINESS: list[tuple[Message, int]] = [
    (FindCoordinatorRequest(key_type=0, coordinator_keys=["any"]), 4),
    (DescribeGroupsRequest(groups=ENOUGH), 0),
    (FindCoordinatorRequest(key_type=1, coordinator_keys=["any"]), 4),
    (DescribeTransactionsRequest(transactional_ids=ENOUGH), 0),
    (InitProducerIdRequest(transactional_id=None), 4),
]
"""What coordinators answer once they have made their topics and loaded every partition."""

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
        make_ready(side)
    return sides


def make_ready(side: Side) -> None:
    def is_answered(request: Message, version: int) -> bool:
        return is_settled(side.ask(request, version))

    for request, version in READINESS:
        wait_until(partial(is_answered, request, version), f"{type(request).__name__} is answered")


def create(side: Side, topic: str, partitions: int = 1) -> None:
    """A topic whose partitions all answer."""
    new = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    side.ask(CreateTopicsRequest(topics=[new]), 7)
    wait_until(lambda: is_led(side, topic, partitions), f"{topic} is led", poll_s=0.01)


def is_led(side: Side, topic: str, partitions: int) -> bool:
    answers: list[Any] = [
        side.ask(list_offsets(topic, -1, partition=index), 5) for index in range(partitions)
    ]
    return all(answer.topics[0].partitions[0].error_code == 0 for answer in answers)
