"""The plain producer's transactions against a broker in this process."""

from collections.abc import Callable
from typing import Any

import pytest

from barnabas.client.consumer import Consumer
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.producer import Producer
from barnabas.client.values import OFFSET_INVALID, ConsumerGroupMetadata, TopicPartition
from barnabas.testing import Broker


def test_produce_needs_a_transaction(make: Callable[..., Producer]) -> None:
    producer = make(transactional_id="needs-one")
    for prepare in (lambda: None, lambda: producer.init_transactions(20)):
        prepare()
        with pytest.raises(KafkaException) as refused:
            producer.produce("t", b"x")
        assert refused.value.args[0].code() == KafkaError._STATE


def test_many_transactions_one_after_the_other(make: Callable[..., Producer]) -> None:
    producer = make(transactional_id="many")
    producer.init_transactions(20)
    reported: list[Any] = []
    for number in range(6):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce("t", b"x", on_delivery=lambda error, _: reported.append(error))
        if number % 2:
            producer.abort_transaction(20)
        else:
            producer.send_offsets_to_transaction(
                [TopicPartition("t", 0, number)], ConsumerGroupMetadata("of-many"), 20
            )
            producer.commit_transaction(20)
    assert len(reported) == 60
    assert reported.count(None) >= 30


def test_the_older_of_two_producers_is_fenced(make: Callable[..., Producer]) -> None:
    older, newer = make(transactional_id="two"), make(transactional_id="two")
    older.init_transactions(20)
    older.begin_transaction()
    older.produce("t", b"x")
    newer.init_transactions(20)
    with pytest.raises(KafkaException) as fenced:
        older.commit_transaction(20)
    assert fenced.value.args[0].fatal()
    with pytest.raises(KafkaException):
        older.produce("t", b"x")


def test_transaction_calls_out_of_order_are_rejected(make: Callable[..., Producer]) -> None:
    producer = make(transactional_id="order")
    for call in (producer.begin_transaction, producer.commit_transaction):
        with pytest.raises(KafkaException) as refused:
            call()
        assert refused.value.args[0].code() == KafkaError._STATE


def test_transactions_need_a_transactional_id(make: Callable[..., Producer]) -> None:
    with pytest.raises(KafkaException) as refused:
        make().init_transactions(30)
    assert refused.value.args[0].code() == KafkaError._NOT_CONFIGURED


def test_an_empty_transaction_can_be_committed_and_aborted(make: Callable[..., Producer]) -> None:
    producer = make(transactional_id="empty")
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.commit_transaction(20)
    producer.begin_transaction()
    producer.abort_transaction(20)


def test_a_partition_that_was_not_read_has_no_offset_in_a_transaction(
    broker: Broker, make: Callable[..., Producer]
) -> None:
    group = ConsumerGroupMetadata("readers of something")
    producer = make(transactional_id="reads little")
    producer.init_transactions(30)
    for offset in (3, OFFSET_INVALID):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition("t", 0, offset)], group, 30)
        producer.commit_transaction(30)
    settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": group.group_id}
    with Consumer(settings) as consumer:
        assert consumer.committed([TopicPartition("t", 0)], 30)[0].offset == 3


def test_offsets_are_sent_for_a_group(make: Callable[..., Producer]) -> None:
    producer = make(transactional_id="for nobody")
    with pytest.raises(TypeError, match="ConsumerGroupMetadata"):
        producer.send_offsets_to_transaction([], None)  # type: ignore[arg-type]
