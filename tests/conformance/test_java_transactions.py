"""Kafka's tools for transactions on Barnabas, and on Kafka, which validates the tests."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tests.conformance.brokers import Broker
from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.confluent import single_result
from tests.conformance.clients.confluent_transactions import ConfluentTransactions
from tests.conformance.clients.transaction_client import FencedError, TransactionalProducer
from tests.conformance.side_by_side.batches import batch
from tests.conformance.side_by_side.requests import produce
from tests.conformance.side_by_side.sides import Side
from tests.conformance.tools import rows, tool
from tests.wait import wait_until

pytestmark = pytest.mark.peer


@pytest.fixture(scope="module")
def client(target: Broker) -> Iterator[ConfluentTransactions]:
    """The client that creates the transactions."""
    made = ConfluentTransactions(target.bootstrap)
    yield made
    made.close()


@contextmanager
def open_transaction(client: ConfluentTransactions, topic: str) -> Iterator[TransactionalProducer]:
    """Opens the second transaction of a producer; its only record has offset 2."""
    client.create_topic(topic)
    producer = client.transactional_producer(topic)
    for _ in range(2):
        producer.begin()
        producer.send(topic, [SentRecord(b"v")])
        if client.watermarks(topic)[1] == 1:
            producer.commit()
            wait_until(lambda: client.watermarks(topic) == (0, 2), "the first has ended")
    yield producer
    producer.close()


def test_transactions_are_listed_and_described(
    target: Broker, client: ConfluentTransactions, topic: str
) -> None:
    with open_transaction(client, topic) as producer:
        (listed,) = [row for row in rows(tool(target, "transactions", "list")) if row[0] == topic]
        assert listed[1] == "1"
        assert listed[3] == "Ongoing"
        producer_id = listed[2]
        one = ("describe", "--transactional-id", topic)
        (described,) = rows(tool(target, "transactions", *one))
        assert described[:2] == ["1", topic]
        assert described[2] == producer_id
        assert described[4:6] == ["Ongoing", "60000"]
        assert described[-1] == f"{topic}-0"
        topic_partition = ("--topic", topic, "--partition", "0")
        (active,) = rows(tool(target, "transactions", "describe-producers", *topic_partition))
        assert active[0] == producer_id
        assert active[-1] == "2"
        producer.commit()
        wait_until(lambda: client.watermarks(topic) == (0, 4), "it has ended")
        (active,) = rows(tool(target, "transactions", "describe-producers", *topic_partition))
        assert active[-1] == "None"
    (described,) = rows(tool(target, "transactions", *one))
    assert described[4] == "CompleteCommit"


def test_a_transaction_is_terminated_by_force(
    target: Broker, client: ConfluentTransactions, topic: str
) -> None:
    with open_transaction(client, topic) as producer:
        tool(target, "transactions", "forceTerminateTransaction", "--transactionalId", topic)
        wait_until(
            lambda: client.watermarks(topic, reads_committed=True) == (0, 4), "it is aborted"
        )
        with pytest.raises(FencedError):
            producer.commit()


def test_a_hanging_transaction_is_listed_and_aborted(
    target: Broker, client: ConfluentTransactions, topic: str
) -> None:
    client.create_topic(topic)
    with unverified(client):
        write_an_hour_ago(target, topic, producer_id=4711)
    assert client.watermarks(topic) == (0, 1)
    assert client.watermarks(topic, reads_committed=True) == (0, 0)
    (found,) = rows(tool(target, "transactions", "find-hanging", "--topic", topic))
    assert found[:4] == [topic, "0", "4711", "0"]
    assert found[5] == "0"
    topic_partition = ("--topic", topic, "--partition", "0")
    tool(target, "transactions", "abort", *topic_partition, "--start-offset", "0")
    wait_until(lambda: client.watermarks(topic, reads_committed=True) == (0, 2), "it is aborted")
    assert rows(tool(target, "transactions", "find-hanging", "--topic", topic)) == []


@contextmanager
def unverified(client: ConfluentTransactions) -> Iterator[None]:
    """Lets producers write to transactions without a coordinator, as before KIP-890."""
    set_verification(client, "false")
    yield
    set_verification(client, "true")


def set_verification(client: ConfluentTransactions, value: str) -> None:
    name = "transaction.partition.verification.enable"
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    single_result(client._admin.incremental_alter_configs([resource]))
    wait_until(lambda: client.broker_configs(1)[name].value == value, f"{name} is {value}")


def write_an_hour_ago(target: Broker, topic: str, *, producer_id: int) -> None:
    """Writes a batch of a transaction that no coordinator has."""
    side = Side("target", target)
    written = batch(
        timestamp_ms=None,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    response = side.send(produce(topic, written, transactional_id="unknown"), 9)
    side.close()
    assert response.responses[0].partition_responses[0].error_code == 0


def test_producer_perf_test_with_transactions(
    target: Broker, client: ConfluentTransactions, topic: str
) -> None:
    printed = tool(
        target,
        "producer-perf-test",
        *("--topic", topic, "--num-records", "20000", "--record-size", "100"),
        *("--throughput", "-1", "--transactional-id", topic, "--transaction-duration-ms", "50"),
    )
    assert printed.splitlines()[-1].startswith("20000 records sent")
    consumed = tool(
        target,
        "console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", "20000"),
        *("--isolation-level", "read_committed", "--formatter-property", "print.offset=true"),
        *("--formatter-property", "print.value=false"),
    )
    offsets = [int(offset) for offset in re.findall(r"Offset:(\d+)", consumed)]
    assert len(offsets) == len(set(offsets)) == 20_000
    assert client.watermarks(topic)[1] > 20_000  # the markers
