"""Transactions that one process prepares and another ends, in V1 and V2."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from barnabas import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from barnabas.admin import AdminClient, FeatureUpdate, NewTopic, UpgradeType
from barnabas.client.values import PreparedTransaction
from barnabas.testing import Broker

TOPIC = "prepared"


@pytest.fixture(scope="module", params=["V2", "V1"])
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker() as running, AdminClient({"bootstrap.servers": running.bootstrap_servers}) as it:
        if request.param == "V1":
            older = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
            it.update_features({"transaction.version": older})["transaction.version"].result(30)
        it.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
        yield running


@pytest.fixture
def admin(broker: Broker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        yield client


@pytest.fixture
def producer(broker: Broker, request: pytest.FixtureRequest) -> Iterator[Producer]:
    conf = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": request.node.name}
    with Producer(conf) as it:
        it.init_transactions(30)
        yield it


def prepared(producer: Producer, value: str) -> PreparedTransaction:
    producer.begin_transaction()
    producer.produce(TOPIC, value)
    return producer.prepare_transaction(10)


def committed(broker: Broker) -> list[str]:
    """All values that count, in their order; nothing is left open."""
    conf = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "reader"}
    with Consumer(conf | {"isolation.level": "read_committed", "enable.partition.eof": True}) as it:
        it.assign([TopicPartition(TOPIC, 0, 0)])
        values: list[str] = []
        while (message := it.poll(10)) is not None:
            if message.error():
                return values
            values.append(message.value().decode())
    raise AssertionError("the end was not reached")


def test_another_process_can_commit_a_prepared_transaction_repeatedly(
    broker: Broker, admin: AdminClient, producer: Producer
) -> None:
    it = prepared(producer, "first")
    assert "first" not in committed(broker)
    for _ in range(3):
        admin.complete_transactions([it], True)[it].result(30)
    assert committed(broker)[-1] == "first"


def test_a_producer_continues_after_another_process_ended_its_transaction(
    broker: Broker, admin: AdminClient, producer: Producer
) -> None:
    for value in ("a", "b", "c"):
        it = prepared(producer, value)
        with pytest.raises(KafkaException):
            producer.produce(TOPIC, "too late")
        admin.complete_transactions([it], True)[it].result(30)
        producer.init_transactions(30)
    assert committed(broker)[-3:] == ["a", "b", "c"]


def test_an_aborted_transaction_cannot_be_committed(
    broker: Broker, admin: AdminClient, producer: Producer
) -> None:
    it = prepared(producer, "never")
    for _ in range(2):
        admin.complete_transactions([it], False)[it].result(30)
    error = admin.complete_transactions([it], True)[it].exception(30).args[0]
    assert error == KafkaError.INVALID_TXN_STATE
    assert it.transactional_id in error.str()
    assert "never" not in committed(broker)


def test_a_fenced_transaction_is_reported_as_aborted(
    broker: Broker, admin: AdminClient, producer: Producer
) -> None:
    it = prepared(producer, "lost")
    admin.fence_transactions([it])[it].result(30)
    error = admin.complete_transactions([it], True)[it].exception(30).args[0]
    assert error == KafkaError.INVALID_TXN_STATE
    admin.complete_transactions([it], False)[it].result(30)
    assert "lost" not in committed(broker)


def test_a_producer_fenced_while_writing_fails(
    broker: Broker, admin: AdminClient, producer: Producer, request: pytest.FixtureRequest
) -> None:
    transactional_id = request.node.name
    producer.begin_transaction()
    producer.produce(TOPIC, "first half")
    assert producer.flush(30) == 0
    (found,) = admin.describe_transactions([transactional_id]).values()
    now = found.result(30)
    it = PreparedTransaction(transactional_id, now.producer_id, now.producer_epoch)
    admin.fence_transactions([it])[it].result(30)
    producer.produce(TOPIC, "second half")
    with pytest.raises(KafkaException):
        producer.prepare_transaction(30)
    assert not {"first half", "second half"} & set(committed(broker))


def test_a_late_fence_does_not_report_a_commit_as_aborted(
    broker: Broker, admin: AdminClient, producer: Producer
) -> None:
    it = prepared(producer, "kept")
    admin.complete_transactions([it], True)[it].result(30)
    admin.fence_transactions([it])[it].result(30)
    error = admin.complete_transactions([it], True)[it].exception(30)
    assert error is None or error.args[0] == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    assert "kept" in committed(broker)


def test_the_outcome_is_unknown_if_the_id_was_used_again(
    admin: AdminClient, producer: Producer
) -> None:
    it = prepared(producer, "who knows")
    admin.fence_producers([it.transactional_id])[it.transactional_id].result(30)
    error = admin.complete_transactions([it], True)[it].exception(30).args[0]
    assert error == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    assert it.transactional_id in error.str()


def test_the_outcome_is_unknown_if_the_id_expired(admin: AdminClient) -> None:
    nobody = PreparedTransaction("nobody", 12345, 0)
    error = admin.complete_transactions([nobody], True)[nobody].exception(30).args[0]
    assert error == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
    assert admin.complete_transactions([nobody], False)[nobody].result(30) is None


def test_the_producer_completes_its_prepared_transaction(
    broker: Broker, producer: Producer
) -> None:
    it = prepared(producer, "decided")
    producer.complete_transaction(it, 10)
    other = prepared(producer, "not decided")
    producer.complete_transaction(replace(other, epoch=other.epoch + 1), 10)
    values = committed(broker)
    assert "decided" in values
    assert "not decided" not in values
