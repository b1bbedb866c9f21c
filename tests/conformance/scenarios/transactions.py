"""Transactions: committed records are read, aborted ones are not, and old producers are fenced."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from tests.conformance.clients.client import (
    DEADLINE_S,
    BrokerError,
    ErrorCode,
    SentRecord,
    raises_error,
)
from tests.conformance.clients.group_client import (
    Committed,
    ConsumerOptions,
    PartitionKey,
    Protocol,
)
from tests.conformance.clients.transaction_client import (
    FencedError,
    TransactionAdminClient,
    TransactionalProducer,
    TransactionClient,
)
from tests.conformance.scenarios.groups import (
    create_partitioned_topic,
    joined_members,
    produce_to_all,
)
from tests.wait import wait_until

LAST = b"last"


class TransactionScenarios:
    def test_aborted_records_are_not_read(self, client: TransactionClient, topic: str) -> None:
        client.create_topic(topic)
        with transactional_producer(client, topic) as producer:
            transact(producer, topic, b"a", b"b")
            transact(producer, topic, b"c", commit=False)
            transact(producer, topic, b"d")
            transact(producer, topic, b"e", b"f", commit=False)
        client.produce(topic, [SentRecord(LAST)])
        assert read(client, topic) == [b"a", b"b", b"d", LAST]
        assert read(client, topic, committed=False) == [b"a", b"b", b"c", b"d", b"e", b"f", LAST]

    def test_an_open_transaction_hides_later_records(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        with transactional_producer(client, topic) as producer:
            producer.begin()
            producer.send(topic, [SentRecord(b"first")])
            client.produce(topic, [SentRecord(LAST)])
            assert client.watermarks(topic) == (0, 2)
            assert client.watermarks(topic, reads_committed=True) == (0, 0)
            assert read(client, topic, committed=False) == [b"first", LAST]
            producer.commit()
            wait_until(
                lambda: client.watermarks(topic, reads_committed=True) == (0, 3), "it has ended"
            )
        assert read(client, topic) == [b"first", LAST]

    def test_a_transaction_spans_many_partitions(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic, 20)
        with transactional_producer(client, topic) as producer:
            for value, commit in (b"kept", True), (b"dropped", False):
                producer.begin()
                sent = [SentRecord(value, partition=partition) for partition in range(20)]
                producer.send(topic, sent * 10)
                producer.commit() if commit else producer.abort()
        client.produce(topic, [SentRecord(LAST, partition=partition) for partition in range(20)])
        expected = [b"kept"] * 10 + [LAST]
        assert read(client, topic, partitions=20) == expected * 20

    def test_a_transaction_can_be_large_or_empty(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        values = [b"%d" % number + bytes(2_000) for number in range(2_000)]
        with transactional_producer(client, topic) as producer:
            transact(producer, topic, *values, commit=False)
            transact(producer, topic)
            transact(producer, topic, *values)
            transact(producer, topic, commit=False)
            transact(producer, topic, LAST)
        assert read(client, topic) == [*values, LAST]

    def test_the_next_producer_with_an_id_continues(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        for value in b"a", b"b", LAST:
            with transactional_producer(client, topic) as producer:
                transact(producer, topic, value)
                transact(producer, topic, value + b" dropped", commit=False)
        assert read(client, topic) == [b"a", b"b", LAST]

    def test_a_second_producer_with_an_id_fences_the_first(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        with transactional_producer(client, topic) as first:
            transact(first, topic, b"a")
            first.begin()
            first.send(topic, [SentRecord(b"dropped")])
            with transactional_producer(client, topic) as second:
                transact(second, topic, b"b")
                with pytest.raises(FencedError):
                    first.commit()
                transact(second, topic, LAST)
        assert read(client, topic) == [b"a", b"b", LAST]

    def test_a_transaction_that_times_out_is_aborted(
        self, client: TransactionClient, topic: str
    ) -> None:
        for timeout_ms in (1_000, 10_000, 60_000):
            client.create_topic(timed := f"{topic}-{timeout_ms}")
            with transactional_producer(client, timed, timeout_ms=timeout_ms) as producer:
                producer.begin()
                try:
                    producer.send(timed, [SentRecord(b"dropped")])
                except Exception:
                    continue  # on a busy machine it may time out before it is sent
                is_aborted = partial(is_at_watermark, client, timed, 2)
                wait_until(is_aborted, "it is aborted", 2 * timeout_ms / 1000 + DEADLINE_S)
                with pytest.raises((FencedError, BrokerError)):
                    producer.commit()
                break
        else:
            pytest.fail("the transaction timed out before the record was sent, with every timeout")
        topic = timed
        with transactional_producer(client, topic) as producer:
            transact(producer, topic, LAST)
        assert read(client, topic) == [LAST]

    def test_a_timeout_above_the_limit_is_rejected(
        self, client: TransactionClient, topic: str
    ) -> None:
        with raises_error(ErrorCode.INVALID_TRANSACTION_TIMEOUT):
            client.transactional_producer(topic, timeout_ms=901_000)


class OffsetTransactionScenarios:
    def test_offsets_are_committed_with_the_transaction(
        self, client: TransactionClient, topic: str
    ) -> None:
        topic_partitions, results = create_partitioned_topic(client, topic), f"{topic}-results"
        client.create_topic(results)
        values = produce_to_all(client, topic, 10)
        options = ConsumerOptions(client.protocols[0])
        with (
            joined_members(client.join(topic, [topic], options)) as group_members,
            transactional_producer(client, topic) as producer,
        ):
            group_members.consume_all(values)
            for commit in False, True:
                assert client.group_offsets(topic) == {}
                producer.begin()
                producer.send(results, [SentRecord(LAST if commit else b"dropped")])
                producer.send_offsets(
                    dict.fromkeys(topic_partitions, Committed(10)),
                    group_members.members[0].group_metadata(),
                )
                assert client.group_offsets(topic) == {}
                producer.commit() if commit else producer.abort()
            expected = dict.fromkeys(topic_partitions, Committed(10))
            wait_until(lambda: client.group_offsets(topic) == expected, "they are committed")
        assert read(client, results) == [LAST]


class MembershipTransactionScenarios:
    """KIP-447, for libraries that send group metadata and wait for pending offsets."""

    def test_a_member_waits_for_pending_offsets(
        self, client: TransactionClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        values = produce_to_all(client, topic, 10)
        options = ConsumerOptions(protocol, reads_committed=True)
        with transactional_producer(client, topic) as producer:
            with joined_members(client.join(topic, [topic], options)) as group_members:
                group_members.consume_all(values)
                producer.begin()
                pending = dict.fromkeys(topic_partitions, Committed(10))
                producer.send_offsets(pending, group_members.members[0].group_metadata())
            with joined_members(client.join(topic, [topic], options)) as group_members:
                group_members.wait_until_shared(topic_partitions)
                producer.commit()
                group_members.consume_all(produce_to_all(client, topic, 1))
        assert sorted(consumed.offset for _, consumed in group_members.consumed) == [10] * len(
            topic_partitions
        )

    def test_offsets_of_an_earlier_generation_are_rejected(
        self, client: TransactionClient, topic: str, protocol: Protocol
    ) -> None:
        topic_partitions = create_partitioned_topic(client, topic)
        values = produce_to_all(client, topic, 10)
        options = ConsumerOptions(protocol)
        with (
            joined_members(client.join(topic, [topic], options)) as group_members,
            transactional_producer(client, topic) as producer,
        ):
            group_members.consume_all(values)
            stale = group_members.members[0].group_metadata()
            group_members.members.append(client.join(topic, [topic], options))
            group_members.wait_until_shared(topic_partitions)
            producer.begin()
            with pytest.raises((FencedError, BrokerError)):
                producer.send_offsets(dict.fromkeys(topic_partitions, Committed(10)), stale)
            producer.abort()
            assert client.group_offsets(topic) == {}


class TransactionAdminScenarios:
    def test_transactions_are_listed_and_described(
        self, client: TransactionAdminClient, topic: str
    ) -> None:
        client.create_topic(topic, 2)
        with transactional_producer(client, topic, timeout_ms=50_000) as producer:
            assert client.transactions()[topic] == "Empty"
            producer.begin()
            producer.send(topic, [SentRecord(b"v", partition=1)])
            described = client.describe_transaction(topic)
            assert described.state == client.transactions()[topic] == "Ongoing"
            assert described.timeout_ms == 50_000
            assert described.topic_partitions == {PartitionKey(topic, 1)}
            assert client.open_producers(PartitionKey(topic, 1)) == {described.producer_id: 0}
            assert client.open_producers(PartitionKey(topic, 0)) == {}
            producer.commit()
            wait_until(
                lambda: client.describe_transaction(topic).state == "CompleteCommit", "it has ended"
            )
            assert client.open_producers(PartitionKey(topic, 1)) == {}
        with raises_error(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            client.describe_transaction(f"not-{topic}")


@contextmanager
def transactional_producer(
    client: TransactionClient, topic: str, *, timeout_ms: int = 60_000
) -> Iterator[TransactionalProducer]:
    """A producer whose transactional id is the topic's name."""
    producer = client.transactional_producer(topic, timeout_ms=timeout_ms)
    try:
        yield producer
    finally:
        producer.close()


def is_at_watermark(client: TransactionClient, topic: str, offset: int) -> bool:
    return client.watermarks(topic, reads_committed=True) == (0, offset)


def transact(
    producer: TransactionalProducer, topic: str, *values: bytes, commit: bool = True
) -> None:
    producer.begin()
    producer.send(topic, [SentRecord(value) for value in values])
    producer.commit() if commit else producer.abort()


def read(
    client: TransactionClient, topic: str, *, committed: bool = True, partitions: int = 1
) -> list[bytes | None]:
    """Returns the values up to LAST in every partition, one partition after another."""
    topic_partitions = [PartitionKey(topic, partition) for partition in range(partitions)]
    with joined_members(
        client.assigned_consumer(
            f"{topic}-{committed}", topic_partitions, reads_committed=committed
        )
    ) as group_members:
        group_members.poll_until(
            lambda: (
                sum(consumed.value == LAST for _, consumed in group_members.consumed) == partitions
            ),
            "the last record is read",
        )
    return [
        consumed.value
        for topic_partition in topic_partitions
        for _, consumed in group_members.consumed
        if consumed.topic_partition == topic_partition
    ]
