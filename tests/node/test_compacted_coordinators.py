"""Coordinators load compacted logs: only what is left, and the same state as before."""

from collections import Counter
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.coordinator.groups.state import GroupCoordinatorState
from barnabas.coordinator.records import CoordinatorRecord, EncodedRecord
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.testing import Broker

COMMITS = 200
TRANSACTIONS = 20
DAY_S = 24 * 3600
TIMEOUT_S = 20


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders")
        yield broker


@pytest.fixture
def replayed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the records that the coordinators replay."""
    counts: Counter[str] = Counter()

    def count(name: str, state: type) -> None:
        replay = state.replay  # type: ignore[attr-defined]

        def counting(self: object, record: CoordinatorRecord, producer_id: int) -> None:
            counts[name] += 1
            replay(self, record, producer_id)

        monkeypatch.setattr(state, "replay", counting)

    replay_plain = GroupCoordinatorState.replay_plain_commits

    def counting_plain(
        self: GroupCoordinatorState, encoded: list[EncodedRecord], start: int
    ) -> int:
        end = replay_plain(self, encoded, start)
        counts["groups"] += end - start
        return end

    monkeypatch.setattr(GroupCoordinatorState, "replay_plain_commits", counting_plain)
    count("groups", GroupCoordinatorState)
    count("transactions", TransactionCoordinatorState)
    return counts


def consumer(broker: Broker, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})


def commit(broker: Broker, group: str, offsets: range) -> None:
    client = consumer(broker, group)
    for offset in offsets:
        client.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    client.close()


def committed(broker: Broker, group: str) -> int:
    client = consumer(broker, group)
    (partition,) = client.committed([TopicPartition("orders", 0)], TIMEOUT_S)
    client.close()
    return partition.offset


def delete_group(broker: Broker, group: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.delete_consumer_groups([group])[group].result(TIMEOUT_S)


def transactional_producer(broker: Broker) -> Producer:
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "pipeline"}
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def run_transactions(broker: Broker, offsets: range) -> Producer:
    """Commits each offset in a transaction, and aborts one more."""
    reader = consumer(broker, "pipeline")
    producer = transactional_producer(broker)
    for offset in (*offsets, 1_000_000):
        producer.begin_transaction()
        producer.produce("orders", str(offset), "key")
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 0, offset)], reader.consumer_group_metadata(), TIMEOUT_S
        )
        if offset in offsets:
            producer.commit_transaction(TIMEOUT_S)
        else:
            producer.abort_transaction(TIMEOUT_S)
    reader.close()
    return producer


def size_bytes(broker: Broker, topic: str) -> int:
    return sum(path.stat().st_size for path in (broker.directory / f"{topic}-0").glob("*.log"))


def test_a_restarted_coordinator_loads_only_what_compaction_left(
    broker: Broker, replayed: Counter[str]
) -> None:
    commit(broker, "readers", range(COMMITS))
    commit(broker, "gone", range(3))
    delete_group(broker, "gone")
    old_producer = run_transactions(broker, range(TRANSACTIONS))
    before_bytes = size_bytes(broker, "__consumer_offsets")
    assert replayed["groups"] > TRANSACTIONS  # other commits are packed, and are not counted
    assert replayed["transactions"] > 2 * TRANSACTIONS

    broker.compact()
    broker.clock.advance(DAY_S + 1)  # until the tombstones of the deleted group may go
    broker.compact()
    replayed.clear()
    broker.restart()
    assert committed(broker, "readers") == COMMITS - 1
    assert committed(broker, "pipeline") == TRANSACTIONS - 1
    assert committed(broker, "gone") < 0
    assert replayed == {"groups": 2, "transactions": 1}
    assert size_bytes(broker, "__consumer_offsets") < before_bytes / 10

    # The transactional id has its epoch still: a new producer fences the old one.
    run_transactions(broker, range(TRANSACTIONS, 2 * TRANSACTIONS))
    old_producer.begin_transaction()
    old_producer.produce("orders", "late", "key")
    with pytest.raises(KafkaException):
        old_producer.commit_transaction(TIMEOUT_S)
    commit(broker, "readers", range(COMMITS, 2 * COMMITS))
    broker.compact()
    broker.restart()
    assert committed(broker, "readers") == 2 * COMMITS - 1
    assert committed(broker, "pipeline") == 2 * TRANSACTIONS - 1
