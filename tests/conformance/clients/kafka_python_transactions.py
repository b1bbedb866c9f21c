"""Adapter for transactions of kafka-python."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from tests.conformance.clients.client import DEADLINE_S, BrokerError, SentRecord
from tests.conformance.clients.group_client import Committed, PartitionKey
from tests.conformance.clients.kafka_python import translated_errors
from tests.conformance.clients.kafka_python_groups import KafkaPythonGroups, with_offsets
from tests.conformance.clients.transaction_client import (
    TIMEOUT_MS,
    FencedError,
    Transaction,
    TransactionAdminClient,
    TransactionalProducer,
)


class KafkaPythonTransactionalProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=1,
            max_block_ms=DEADLINE_S * 1000,
        )
        with translated_fencing_errors():
            self._producer.init_transactions()

    def begin(self) -> None:
        with translated_fencing_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[SentRecord]) -> None:
        with translated_fencing_errors():
            futures = [
                self._producer.send(
                    topic, value=record.value, key=record.key, partition=record.partition
                )
                for record in records
            ]
            self._producer.flush(DEADLINE_S)
            for future in futures:
                future.get(DEADLINE_S)

    def send_offsets(self, offsets: Mapping[PartitionKey, Committed], group_metadata: Any) -> None:
        with translated_fencing_errors():
            self._producer.send_offsets_to_transaction(with_offsets(offsets), group_metadata)

    def commit(self) -> None:
        with translated_fencing_errors():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with translated_fencing_errors():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class KafkaPythonTransactions(KafkaPythonGroups, TransactionAdminClient):
    def transactional_producer(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return KafkaPythonTransactionalProducer(self.bootstrap, transactional_id, timeout_ms)

    def transactions(self) -> dict[str, str]:
        (listed,) = self._admin.list_transactions().values()
        return {listing.transactional_id: listing.state.value for listing in listed}

    def describe_transaction(self, transactional_id: str) -> Transaction:
        with translated_errors():
            described = self._admin.describe_transactions([transactional_id])[transactional_id]
        return Transaction(
            described.state.value,
            described.producer_id,
            described.producer_epoch,
            described.transaction_timeout_ms,
            frozenset(
                PartitionKey(*topic_partition) for topic_partition in described.topic_partitions
            ),
        )

    def open_producers(self, topic_partition: PartitionKey) -> dict[int, int]:
        with translated_errors():
            producers = self._admin.describe_producers([TopicPartition(*topic_partition)])
        return {
            producer.producer_id: producer.current_transaction_start_offset
            for producer in producers[TopicPartition(*topic_partition)].active_producers
            if producer.current_transaction_start_offset >= 0
        }


@contextmanager
def translated_fencing_errors() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as exception:
        raise FencedError(str(exception)) from exception
    except KafkaError as exception:
        # The library has the code of other errors in the text only.
        error = re.search(r"\[Error (\d+)\]", str(exception))
        raise BrokerError(int(error[1]) if error else None, str(exception)) from exception
