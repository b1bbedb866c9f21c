"""Kafka's commands in this process, on a broker in this process."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.cli.kafka import COMMANDS
from barnabas.testing import Broker


@dataclass(slots=True, frozen=True)
class CommandResult:
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command by its name; an exception fails the test."""

    def call(name: str, *arguments: object) -> CommandResult:
        capsys.readouterr()
        main = import_module(f"barnabas.cli.kafka.{COMMANDS[name]}").main
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            status = end.code
        printed = capsys.readouterr()
        return CommandResult(int(status or 0), printed.out, printed.err)

    return call


@pytest.fixture
def kafka(run: Command, broker: Broker) -> Command:
    """Runs a command on the broker."""

    def call(name: str, *arguments: object) -> CommandResult:
        return run(name, "--bootstrap-server", broker.bootstrap_servers, *arguments)

    return call


def produce(
    broker: Broker, topic: str, count: int, partition: int = 0, key: str | None = None
) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, str(number), key, partition=partition)
    producer.flush()


def commit(broker: Broker, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """Commits offsets of a group without members."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
    consumer.commit(
        offsets=[TopicPartition(*partition, offset) for partition, offset in offsets.items()],
        asynchronous=False,
    )
    consumer.close()
