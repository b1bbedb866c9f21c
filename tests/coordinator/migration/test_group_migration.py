"""Groups that move both ways while members come, go, crash and their coordinator fails over: no
partition is ever consumed by two, and in the end each is consumed by one."""

import os
from random import Random

import pytest
from tests.coordinator.migration.consumers import ClassicConsumer, Consumer
from tests.coordinator.migration.harness import MigrationHarness
from tests.os_faults import fault_in_this_thread

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.wire.errors import ErrorCode, KafkaError

TOPICS = {"t": 7, "u": 3}
MAX_CONSUMERS = 5
LOST = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class Simulation:
    def __init__(self, seed: int, **settings: object) -> None:
        self.random = Random(seed)
        self.harness = MigrationHarness(TOPICS, **settings)
        self.consumers: list[ClassicConsumer | Consumer] = []
        self._names = iter(range(1_000_000))

    def act(self) -> None:
        """Let something happen."""
        match self.random.random():
            case chance if chance < 0.05 and len(self.consumers) < MAX_CONSUMERS:
                self.add_classic(cooperative=self.random.random() < 0.7)
            case chance if chance < 0.10 and len(self.consumers) < MAX_CONSUMERS:
                self.add_consumer()
            case chance if chance < 0.14 and self.consumers:
                self.remove(self.random.choice(self.consumers))
            case chance if chance < 0.16 and self.consumers:
                self.consumers.remove(self.random.choice(self.consumers))  # it crashes
            case chance if chance < 0.18:
                self.harness.lead_again()
            case chance if chance < 0.30:
                self.harness.advance(self.random.choice((0, 10, 500, 3_000)))
            case _ if self.consumers:
                self.step(self.random.choice(self.consumers))
        self.check()

    def add_classic(self, *, cooperative: bool) -> ClassicConsumer:
        topics = self.random.choice((("t",), ("t", "u")))
        self.consumers.append(ClassicConsumer(self.harness, cooperative=cooperative, topics=topics))
        return self.consumers[-1]  # type: ignore[return-value]

    def add_consumer(self) -> Consumer:
        topics = self.random.choice((("t",), ("t", "u")))
        name = f"consumer-{next(self._names)}"
        self.consumers.append(Consumer(self.harness, name, topics=topics))
        return self.consumers[-1]  # type: ignore[return-value]

    def remove(self, consumer: ClassicConsumer | Consumer) -> None:
        self.consumers.remove(consumer)
        try:
            consumer.leave()
        except KafkaError as error:
            if error.code not in LOST:
                raise

    def step(self, consumer: ClassicConsumer | Consumer) -> None:
        try:
            consumer.step()
        except KafkaError as error:
            if error.code not in LOST or not isinstance(consumer, Consumer):
                raise
            consumer.lose()

    def settle(self) -> None:
        """Nothing more happens: everybody does what they have to for some minutes."""
        for _ in range(400):
            self.harness.advance(500)
            for consumer in self.consumers:
                self.step(consumer)
                self.check()

    def check(self) -> None:
        owners: dict[tuple[str, int], object] = {}
        for consumer in self.consumers:
            consumer.give_up_when_late()
            for partition in consumer.owned:
                assert partition not in owners, f"{partition} is consumed twice"
                owners[partition] = consumer

    def check_settled(self) -> None:
        requested = {topic for consumer in self.consumers for topic in consumer.topics}
        everything = {(topic, index) for topic in requested for index in range(TOPICS[topic])}
        owned = {partition for consumer in self.consumers for partition in consumer.owned}
        assert owned == everything
        speaks_new_protocol = any(isinstance(each, Consumer) for each in self.consumers)
        expected = ConsumerGroup if speaks_new_protocol else ClassicGroup
        if self.consumers:
            assert isinstance(self.harness.group, expected)


@pytest.mark.parametrize("seed", range(24))
def test_no_partition_has_two_consumers_and_in_the_end_each_has_one(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Ids are made of it.
    monkeypatch.setattr(os, "urandom", fault_in_this_thread("urandom", Random(seed).randbytes))
    simulation = Simulation(seed)
    for _ in range(400):
        simulation.act()
    simulation.settle()
    simulation.check_settled()


@pytest.mark.parametrize("cooperative", [True, False])
def test_a_rolling_upgrade_and_back(cooperative: bool) -> None:
    """Members are replaced one by one, first by the new protocol, then by the old one."""
    simulation = Simulation(1)
    for _ in range(3):
        simulation.add_classic(cooperative=cooperative)
    simulation.settle()
    simulation.check_settled()
    for _ in range(3):
        simulation.remove(simulation.consumers[0])
        simulation.add_consumer()
        simulation.settle()
        simulation.check_settled()
    for _ in range(3):
        simulation.remove(simulation.consumers[0])
        simulation.add_classic(cooperative=cooperative)
        simulation.settle()
        simulation.check_settled()


def test_groups_assign_at_intervals_and_become_stable() -> None:
    simulation = Simulation(2, group_consumer_assignment_interval_ms=1_000)
    for _ in range(400):
        simulation.act()
    simulation.settle()
    simulation.check_settled()
