"""Consumers of every library read a cleaned topic over its holes, from any offset."""

from collections.abc import Iterator

import pytest
from tests.conformance.brokers import run_peer
from tests.conformance.clients.aio_transactions import AiokafkaTransactions
from tests.conformance.clients.client import SentRecord
from tests.conformance.clients.confluent_transactions import ConfluentTransactions
from tests.conformance.clients.group_client import ConsumedRecord, Member, PartitionKey
from tests.conformance.clients.kafka_python_transactions import KafkaPythonTransactions
from tests.conformance.clients.ours import BarnabasTransactions
from tests.conformance.clients.transaction_client import TransactionalProducer, TransactionClient
from tests.wait import wait_until

from barnabas.testing import Broker

LIBRARIES = {
    "barnabas": BarnabasTransactions,
    "confluent_kafka": ConfluentTransactions,
    "kafka_python": KafkaPythonTransactions,
    "aiokafka": AiokafkaTransactions,
}
PRICES = PartitionKey("prices", 0)
DAY_S = 24 * 3600
LAST = b"last"

LEFT = {3: b"C=5", 5: b"A=3", 9: b"D=1", 1_010: b"E=999", 1_014: LAST}
"""The values that are left, by offset: what `write` does not replace, abort or delete."""
STARTS = (0, 1, 4, 6, 8, 500, 1_010, 1_011, 1_013, 1_014)
"""Offsets of records, and in all kinds of holes."""


def write(client: TransactionClient) -> None:
    client.produce(PRICES.topic, keyed("A=1", "B=10", "A=2", "C=5", "B=20", "A=3"))  # from 0
    producer = client.transactional_producer("writer")
    transact(producer, "A=aborted", "F=aborted", commits=False)  # 6 and 7
    transact(producer, "D=1", commits=True)  # 9
    producer.close()
    client.produce(PRICES.topic, keyed(*(f"E={number}" for number in range(1_000))))  # from 11
    client.produce(PRICES.topic, [SentRecord(None, b"B")])  # 1,011
    other = client.transactional_producer("other")
    transact(other, "A=aborted", commits=False)  # 1,012; its marker ends the cleaned part
    other.close()


def transact(producer: TransactionalProducer, *pairs: str, commits: bool) -> None:
    producer.begin()
    producer.send(PRICES.topic, keyed(*pairs))
    producer.commit() if commits else producer.abort()


def keyed(*pairs: str) -> list[SentRecord]:
    """The key is before the sign; the value is the whole text."""
    return [SentRecord(pair.encode(), pair.partition("=")[0].encode()) for pair in pairs]


@pytest.fixture(scope="module")
def cleaned() -> Iterator[Broker]:
    with Broker() as broker:
        client = ConfluentTransactions(broker.bootstrap_servers)
        client.create_topic(PRICES.topic, configs={"cleanup.policy": "compact"})
        write(client)
        broker.compact()
        broker.clock.advance(DAY_S + 1)  # until the tombstone may go
        broker.compact()
        assert client.produce(PRICES.topic, [SentRecord(LAST, b"last")]) == [1_014]
        client.close()
        yield broker


@pytest.mark.parametrize("reads_committed", [False, True], ids=["uncommitted", "committed"])
@pytest.mark.parametrize("library", LIBRARIES.values(), ids=LIBRARIES)
def test_a_consumer_reads_what_is_left_from_any_offset(
    cleaned: Broker, library: type[TransactionClient], reads_committed: bool
) -> None:
    client = library(cleaned.bootstrap_servers)
    member = client.assigned_consumer("readers", [PRICES], reads_committed=reads_committed)
    assert read_to_last(member) == LEFT
    for start in STARTS:
        member.seek(PRICES, start)
        left = {offset: value for offset, value in LEFT.items() if offset >= start}
        assert read_to_last(member) == left, f"from {start}"
    member.leave()
    client.close()


def read_to_last(member: Member) -> dict[int, bytes | None]:
    consumed: list[ConsumedRecord] = []

    def has_last() -> bool:
        consumed.extend(member.poll())
        return any(record.value == LAST for record in consumed)

    wait_until(has_last, "the last record is read")
    return {record.offset: record.value for record in consumed}


@pytest.mark.peer
@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_the_java_consumer_reads_what_is_left(cleaned: Broker, isolation_level: str) -> None:
    printed = run_peer(
        *("tool", "console-consumer", "--bootstrap-server", cleaned.bootstrap_servers),
        *("--topic", PRICES.topic, "--partition", "0", "--offset", "4", "--max-messages", "4"),
        *("--isolation-level", isolation_level, "--formatter-property", "print.offset=true"),
    )
    left = [f"Offset:{offset}\t{value.decode()}" for offset, value in LEFT.items() if offset >= 4]
    assert printed.splitlines() == left
