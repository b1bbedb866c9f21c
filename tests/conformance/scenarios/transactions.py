"""Transactions: what is committed is seen, what is aborted is not, and only one may write."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from tests.conformance.clients.client import DEADLINE_S, BrokerError, Code, Sent, refused_with
from tests.conformance.clients.group_client import Committed, Joining, Place, Protocol
from tests.conformance.clients.transaction_client import (
    DescribesTransactions,
    FencedError,
    Transactional,
    TransactionClient,
)
from tests.conformance.scenarios.groups import at_work, created, produced
from tests.wait import wait_until

LAST = b"last"


class TransactionScenarios:
    def test_what_is_aborted_is_not_read(self, client: TransactionClient, topic: str) -> None:
        client.create_topic(topic)
        with producing(client, topic) as producer:
            transact(producer, topic, b"a", b"b")
            transact(producer, topic, b"c", commit=False)
            transact(producer, topic, b"d")
            transact(producer, topic, b"e", b"f", commit=False)
        client.produce(topic, [Sent(LAST)])
        assert read(client, topic) == [b"a", b"b", b"d", LAST]
        assert read(client, topic, committed=False) == [b"a", b"b", b"c", b"d", b"e", b"f", LAST]

    def test_an_open_transaction_hides_what_follows(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        with producing(client, topic) as producer:
            producer.begin()
            producer.send(topic, [Sent(b"first")])
            client.produce(topic, [Sent(LAST)])
            assert client.ends(topic) == (0, 2)
            assert client.ends(topic, reads_committed=True) == (0, 0)
            assert read(client, topic, committed=False) == [b"first", LAST]
            producer.commit()
            wait_until(lambda: client.ends(topic, reads_committed=True) == (0, 3), "it has ended")
        assert read(client, topic) == [b"first", LAST]

    def test_a_transaction_spans_many_partitions(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic, 20)
        with producing(client, topic) as producer:
            for value, commit in (b"kept", True), (b"dropped", False):
                producer.begin()
                sent = [Sent(value, partition=partition) for partition in range(20)]
                producer.send(topic, sent * 10)
                producer.commit() if commit else producer.abort()
        client.produce(topic, [Sent(LAST, partition=partition) for partition in range(20)])
        expected = [b"kept"] * 10 + [LAST]
        assert read(client, topic, partitions=20) == expected * 20

    def test_a_transaction_may_be_large_or_empty(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        values = [b"%d" % number + bytes(2_000) for number in range(2_000)]
        with producing(client, topic) as producer:
            transact(producer, topic, *values, commit=False)
            transact(producer, topic)
            transact(producer, topic, *values)
            transact(producer, topic, commit=False)
            transact(producer, topic, LAST)
        assert read(client, topic) == [*values, LAST]

    def test_the_next_producer_of_an_id_goes_on(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        for value in b"a", b"b", LAST:
            with producing(client, topic) as producer:
                transact(producer, topic, value)
                transact(producer, topic, value + b" dropped", commit=False)
        assert read(client, topic) == [b"a", b"b", LAST]

    def test_a_second_producer_of_an_id_fences_the_first(
        self, client: TransactionClient, topic: str
    ) -> None:
        client.create_topic(topic)
        with producing(client, topic) as first:
            transact(first, topic, b"a")
            first.begin()
            first.send(topic, [Sent(b"dropped")])
            with producing(client, topic) as second:
                transact(second, topic, b"b")
                with pytest.raises(FencedError):
                    first.commit()
                transact(second, topic, LAST)
        assert read(client, topic) == [b"a", b"b", LAST]

    def test_a_transaction_out_of_time_is_aborted(
        self, client: TransactionClient, topic: str
    ) -> None:
        for timeout_ms in (1_000, 10_000, 60_000):
            client.create_topic(timed := f"{topic}-{timeout_ms}")
            with producing(client, timed, timeout_ms=timeout_ms) as producer:
                producer.begin()
                try:
                    producer.send(timed, [Sent(b"dropped")])
                except Exception:
                    continue  # on a busy machine it may be out of time before it is sent
                is_aborted = partial(ends_at, client, timed, 2)
                wait_until(is_aborted, "it is aborted", 2 * timeout_ms / 1000 + DEADLINE_S)
                with pytest.raises((FencedError, BrokerError)):
                    producer.commit()
                break
        else:
            pytest.fail("out of time before anything could be sent, however long it was")
        topic = timed
        with producing(client, topic) as producer:
            transact(producer, topic, LAST)
        assert read(client, topic) == [LAST]

    def test_a_timeout_above_the_limit_is_refused(
        self, client: TransactionClient, topic: str
    ) -> None:
        with refused_with(Code.INVALID_TRANSACTION_TIMEOUT):
            client.transactional(topic, timeout_ms=901_000)


class OffsetTransactionScenarios:
    def test_offsets_are_committed_with_the_transaction(
        self, client: TransactionClient, topic: str
    ) -> None:
        places, results = created(client, topic), f"{topic}-results"
        client.create_topic(results)
        values = produced(client, topic, 10)
        joining = Joining(client.protocols[0])
        with at_work(client.join(topic, [topic], joining)) as crew, producing(client, topic) as it:
            crew.take(values)
            for commit in False, True:
                assert client.group_offsets(topic) == {}
                it.begin()
                it.send(results, [Sent(LAST if commit else b"dropped")])
                it.send_offsets(dict.fromkeys(places, Committed(10)), crew.members[0].identity())
                assert client.group_offsets(topic) == {}
                it.commit() if commit else it.abort()
            expected = dict.fromkeys(places, Committed(10))
            wait_until(lambda: client.group_offsets(topic) == expected, "they are committed")
        assert read(client, results) == [LAST]


class MembershipTransactionScenarios:
    """KIP-447, of a library that tells who the member is, and waits for what is pending."""

    def test_a_member_waits_for_offsets_that_are_pending(
        self, client: TransactionClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        values = produced(client, topic, 10)
        joining = Joining(protocol, reads_committed=True)
        with producing(client, topic) as producer:
            with at_work(client.join(topic, [topic], joining)) as crew:
                crew.take(values)
                producer.begin()
                pending = dict.fromkeys(places, Committed(10))
                producer.send_offsets(pending, crew.members[0].identity())
            with at_work(client.join(topic, [topic], joining)) as crew:
                crew.share(places)
                producer.commit()
                crew.take(produced(client, topic, 1))
        assert sorted(taken.offset for _, taken in crew.taken) == [10] * len(places)

    def test_offsets_of_an_earlier_generation_are_refused(
        self, client: TransactionClient, topic: str, protocol: Protocol
    ) -> None:
        places = created(client, topic)
        values = produced(client, topic, 10)
        joining = Joining(protocol)
        with at_work(client.join(topic, [topic], joining)) as crew, producing(client, topic) as it:
            crew.take(values)
            stale = crew.members[0].identity()
            crew.members.append(client.join(topic, [topic], joining))
            crew.share(places)
            it.begin()
            with pytest.raises((FencedError, BrokerError)):
                it.send_offsets(dict.fromkeys(places, Committed(10)), stale)
            it.abort()
            assert client.group_offsets(topic) == {}


class TransactionAdminScenarios:
    def test_transactions_are_listed_and_described(
        self, client: DescribesTransactions, topic: str
    ) -> None:
        client.create_topic(topic, 2)
        with producing(client, topic, timeout_ms=50_000) as producer:
            assert client.transactions()[topic] == "Empty"
            producer.begin()
            producer.send(topic, [Sent(b"v", partition=1)])
            described = client.describe_transaction(topic)
            assert described.state == client.transactions()[topic] == "Ongoing"
            assert described.timeout_ms == 50_000
            assert described.places == {Place(topic, 1)}
            assert client.open_producers(Place(topic, 1)) == {described.producer_id: 0}
            assert client.open_producers(Place(topic, 0)) == {}
            producer.commit()
            wait_until(
                lambda: client.describe_transaction(topic).state == "CompleteCommit", "it has ended"
            )
            assert client.open_producers(Place(topic, 1)) == {}
        with refused_with(Code.TRANSACTIONAL_ID_NOT_FOUND):
            client.describe_transaction(f"not-{topic}")


@contextmanager
def producing(
    client: TransactionClient, topic: str, *, timeout_ms: int = 60_000
) -> Iterator[Transactional]:
    """A producer whose transactional id is the topic's name."""
    producer = client.transactional(topic, timeout_ms=timeout_ms)
    try:
        yield producer
    finally:
        producer.close()


def ends_at(client: TransactionClient, topic: str, offset: int) -> bool:
    return client.ends(topic, reads_committed=True) == (0, offset)


def transact(producer: Transactional, topic: str, *values: bytes, commit: bool = True) -> None:
    producer.begin()
    producer.send(topic, [Sent(value) for value in values])
    producer.commit() if commit else producer.abort()


def read(
    client: TransactionClient, topic: str, *, committed: bool = True, partitions: int = 1
) -> list[bytes | None]:
    """What a consumer sees up to LAST in every partition, one partition after another."""
    places = [Place(topic, partition) for partition in range(partitions)]
    with at_work(
        client.consumer_of(f"{topic}-{committed}", places, reads_committed=committed)
    ) as crew:
        crew.work_until(
            lambda: sum(taken.value == LAST for _, taken in crew.taken) == partitions,
            "the last record is read",
        )
    return [taken.value for place in places for _, taken in crew.taken if taken.place == place]
