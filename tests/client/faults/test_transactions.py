"""What a transactional producer says when its coordinators fail: fatal, to abort, or try again."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.faults.storm import HURRIED
from tests.client.faults.streams import read_all

from barnabas import KafkaError, KafkaException, Producer, TopicPartition
from barnabas.admin import AdminClient, TransactionState
from barnabas.client.values import ConsumerGroupMetadata
from barnabas.testing import Broker

Make = Callable[..., Producer]


@pytest.fixture
def broker(transacting: Broker) -> Iterator[Broker]:
    yield transacting
    transacting.faults.clear()


@pytest.fixture
def make(broker: Broker) -> Iterator[Make]:
    made: list[Producer] = []

    def make(transactional_id: str, **settings: Any) -> Producer:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "transactional.id": transactional_id,
                **HURRIED,
                **names,
            }
        )
        made.append(producer)
        return producer

    yield make
    for producer in made:
        producer.close(0.2)


@pytest.fixture
def topic(broker: Broker, request: pytest.FixtureRequest) -> Iterator[str]:
    name = request.node.originalname.removeprefix("test_")[:80]
    broker.create_topic(name)
    yield name
    broker.delete_topic(name)


def raised(call: Callable[[], object]) -> KafkaError:
    """The error of a call that has to fail."""
    with pytest.raises(KafkaException) as caught:
        call()
    error = caught.value.args[0]
    assert isinstance(error, KafkaError)
    return error


def kept(broker: Broker, topic: str) -> list[bytes]:
    settings = {"isolation.level": "read_committed"}
    return read_all(broker.bootstrap_servers, topic, 1, **settings)[0]


def state_of(broker: Broker, transactional_id: str) -> TransactionState:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    try:
        (future,) = admin.describe_transactions([transactional_id]).values()
        state = future.result(30).state
        assert isinstance(state, TransactionState)
        return state
    finally:
        admin.close()


def test_the_second_producer_fences_the_first(broker: Broker, make: Make, topic: str) -> None:
    first, second = make(topic), make(topic)
    first.init_transactions(30)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(30)
    second.init_transactions(30)
    error = raised(lambda: first.commit_transaction(30))
    assert error.fatal(), error
    assert error.code() == KafkaError._FENCED
    assert raised(lambda: first.abort_transaction(30)).fatal()
    assert raised(first.begin_transaction).fatal()
    assert raised(lambda: first.produce(topic, b"more")).fatal()
    second.begin_transaction()
    second.produce(topic, b"second")
    second.commit_transaction(30)
    assert kept(broker, topic) == [b"second"]


def test_a_producer_is_fenced_while_it_writes(broker: Broker, make: Make, topic: str) -> None:
    first, second = make(topic), make(topic)
    first.init_transactions(30)
    first.begin_transaction()
    first.produce(topic, b"first")
    first.flush(30)
    second.init_transactions(30)
    first.produce(topic, b"too late")
    assert first.flush(30) == 0
    assert raised(lambda: first.commit_transaction(30)).fatal()
    assert kept(broker, topic) == []


def test_a_rejected_record_requires_an_abort_which_succeeds(
    broker: Broker, make: Make, topic: str
) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    with broker.faults.fail("Produce", "INVALID_RECORD", times=1):
        producer.produce(topic, b"refused")
        error = raised(lambda: producer.commit_transaction(30))
    assert error.txn_requires_abort()
    assert not error.fatal()
    assert raised(lambda: producer.produce(topic, b"not now")).txn_requires_abort()
    producer.abort_transaction(30)
    for value in b"1", b"2":
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.commit_transaction(30)
    assert kept(broker, topic) == [b"1", b"2"]


def test_a_commit_that_times_out_can_be_repeated(broker: Broker, make: Make, topic: str) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"1")
    with broker.faults.delay("EndTxn", 60):
        error = raised(lambda: producer.commit_transaction(0.5))
    assert error.retriable()
    assert not error.txn_requires_abort()
    assert error.code() == KafkaError._TIMED_OUT
    producer.commit_transaction(30)
    assert kept(broker, topic) == [b"1"]


def test_records_that_time_out_do_not_block_a_commit(
    broker: Broker, make: Make, topic: str
) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    with broker.faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER"):
        producer.produce(topic, b"1")
        assert raised(lambda: producer.commit_transaction(0.3)).retriable()
    producer.commit_transaction(30)
    assert kept(broker, topic) == [b"1"]


@pytest.mark.parametrize("api", ["FindCoordinator", "InitProducerId"])
def test_init_transactions_times_out_and_can_be_repeated(
    broker: Broker, make: Make, topic: str, api: str
) -> None:
    producer = make(f"{topic}-{api}")
    with broker.faults.fail(api, "COORDINATOR_NOT_AVAILABLE"):
        error = raised(lambda: producer.init_transactions(0.3))
        assert error.retriable(), error
        assert not error.fatal()
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.abort_transaction(30)


def test_an_unauthorized_producer_gets_a_fatal_error(make: Make, broker: Broker) -> None:
    producer = make("forbidden")
    with broker.faults.fail("InitProducerId", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        error = raised(lambda: producer.init_transactions(30))
    assert error.fatal()
    assert error.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_send_offsets_times_out_and_can_be_repeated(broker: Broker, make: Make, topic: str) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    offsets, group = [TopicPartition(topic, 0, 5)], ConsumerGroupMetadata(topic)
    with broker.faults.delay("TxnOffsetCommit", 60):
        error = raised(lambda: producer.send_offsets_to_transaction(offsets, group, 0.4))
    assert error.retriable()
    producer.send_offsets_to_transaction(offsets, group, 30)
    producer.commit_transaction(30)


def test_offsets_of_a_removed_member_require_an_abort(
    broker: Broker, make: Make, topic: str
) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    producer.begin_transaction()
    offsets, group = [TopicPartition(topic, 0, 5)], ConsumerGroupMetadata(topic)
    with broker.faults.fail("TxnOffsetCommit", "ILLEGAL_GENERATION"):
        error = raised(lambda: producer.send_offsets_to_transaction(offsets, group, 30))
    assert error.txn_requires_abort()
    producer.abort_transaction(30)


def test_a_partition_added_late_does_not_reopen_an_aborted_transaction(
    broker: Broker, make: Make, topic: str
) -> None:
    producer = make(topic)
    producer.init_transactions(30)
    before = broker.requests
    with broker.faults.delay("AddPartitionsToTxn", 0.15):
        producer.begin_transaction()
        producer.produce(topic, b"1")
        deadline = time.monotonic() + 10
        while (broker.requests - before).keys().isdisjoint({"AddPartitionsToTxn", "Produce"}):
            assert time.monotonic() < deadline
            producer.poll(0.01)
        producer.abort_transaction(30)
    assert state_of(broker, topic) is TransactionState.COMPLETE_ABORT
    producer.begin_transaction()
    producer.produce(topic, b"2")
    producer.commit_transaction(30)
    assert kept(broker, topic) == [b"2"]


def test_a_call_in_the_wrong_state_raises(make: Make) -> None:
    producer = make("out-of-turn")
    for call in (
        producer.begin_transaction,
        producer.commit_transaction,
        producer.abort_transaction,
        lambda: producer.produce("t", b""),
    ):
        error = raised(call)
        assert error.code() == KafkaError._STATE
        assert not error.fatal()
