"""Transactions and producers, looked after by an administrator."""

import pytest
from tests.client.admin.clients import open_transaction, produce

from barnabas import TopicPartition
from barnabas.admin import (
    AbortTransactionSpec,
    AdminClient,
    KafkaError,
    TransactionState,
)
from barnabas.testing import Broker


def test_an_open_transaction_is_listed_and_described(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    with open_transaction(broker.bootstrap_servers, topic, topic) as producer:
        listed = admin.list_transactions(states=[TransactionState.ONGOING]).result(30)
        (listing,) = [each for each in listed[1] if each.transactional_id == topic]
        assert listing.state is TransactionState.ONGOING
        none = admin.list_transactions(transactional_id_pattern="nothing.*").result(30)
        assert none.all() == {1: []}

        described = admin.describe_transactions([topic, "nobody"])
        transaction = described[topic].result(30)
        assert (transaction.coordinator_id, transaction.state) == (1, TransactionState.ONGOING)
        assert transaction.producer_id == listing.producer_id
        assert transaction.topic_partitions == [TopicPartition(topic, 0)]
        assert transaction.transaction_start_time_ms is not None
        nobody = described["nobody"].exception(30).args[0]
        assert nobody == KafkaError.TRANSACTIONAL_ID_NOT_FOUND
        producer.commit_transaction(30)


def test_producers_of_partitions_are_described(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    written, empty = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with open_transaction(broker.bootstrap_servers, topic, topic) as producer:
        producers = admin.describe_producers([written, empty, TopicPartition("nobody", 0)])
        (state,) = producers[written].result(30)
        assert (state.last_sequence, state.current_transaction_start_offset) == (0, 0)
        assert producers[empty].result(30) == []
        error = producers[TopicPartition("nobody", 0)].exception(30).args[0]
        assert error == KafkaError.UNKNOWN_TOPIC_OR_PART
        by_broker = admin.describe_producers([written], broker_id=1)[written].result(30)
        assert by_broker == [state]
        producer.abort_transaction(30)


def test_a_transaction_can_be_aborted_in_one_partition(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    partition = TopicPartition(topic, 0)
    with open_transaction(broker.bootstrap_servers, topic, topic):
        (state,) = admin.describe_producers([partition])[partition].result(30)
        spec = AbortTransactionSpec(partition, state.producer_id, state.producer_epoch)
        assert admin.abort_transaction(spec).result(30) is None
        (state,) = admin.describe_producers([partition])[partition].result(30)
        assert state.current_transaction_start_offset is None


def test_a_fenced_producer_cannot_write(admin: AdminClient, broker: Broker, topic: str) -> None:
    import confluent_kafka

    with open_transaction(broker.bootstrap_servers, topic, topic) as producer:
        fenced = admin.fence_producers([topic])[topic].result(30)
        assert fenced.producer_epoch > 0
        with pytest.raises(confluent_kafka.KafkaException) as raised:
            producer.commit_transaction(30)
        assert raised.value.args[0].fatal()
    described = admin.describe_transactions([topic])[topic].result(30)
    assert described.state in (TransactionState.COMPLETE_ABORT, TransactionState.EMPTY)


def test_an_idempotent_producer_is_described(
    admin: AdminClient, broker: Broker, topic: str
) -> None:
    produce(broker.bootstrap_servers, topic, 3)
    partition = TopicPartition(topic, 0)
    states = admin.describe_producers([partition])[partition].result(30)
    assert all(state.current_transaction_start_offset is None for state in states)
