"""Adapter for transactions of confluent-kafka."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from tests.conformance.clients.client import DEADLINE_S, BrokerError, SentRecord
from tests.conformance.clients.confluent_groups import ConfluentGroups, with_offsets
from tests.conformance.clients.group_client import Committed, PartitionKey
from tests.conformance.clients.transaction_client import (
    TIMEOUT_MS,
    FencedError,
    TransactionalProducer,
    TransactionClient,
)

FENCED = {
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
}


class ConfluentTransactionalProducer(TransactionalProducer):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 1,
                "log_level": 0,  # being fenced is what some tests are about
            }
        )
        with translated_fencing_errors():
            self._producer.init_transactions(DEADLINE_S)

    def begin(self) -> None:
        with translated_fencing_errors():
            self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[SentRecord]) -> None:
        errors: list[KafkaError] = []
        with translated_fencing_errors():
            for record in records:
                self._producer.produce(
                    topic,
                    record.value,
                    record.key,
                    record.partition,
                    on_delivery=lambda error, _: errors.append(error) if error else None,
                )
            assert self._producer.flush(DEADLINE_S) == 0, "not all records were delivered in time"
            for error in errors:
                raise KafkaException(error)

    def send_offsets(self, offsets: Mapping[PartitionKey, Committed], group_metadata: Any) -> None:
        with translated_fencing_errors():
            self._producer.send_offsets_to_transaction(
                with_offsets(offsets), group_metadata, DEADLINE_S
            )

    def commit(self) -> None:
        with translated_fencing_errors():
            self._producer.commit_transaction(DEADLINE_S)

    def abort(self) -> None:
        with translated_fencing_errors():
            self._producer.abort_transaction(DEADLINE_S)

    def close(self) -> None:
        self._producer.purge()


class ConfluentTransactions(ConfluentGroups, TransactionClient):
    def transactional_producer(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return ConfluentTransactionalProducer(self.bootstrap, transactional_id, timeout_ms)


@contextmanager
def translated_fencing_errors() -> Iterator[None]:
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() in FENCED:
            raise FencedError(error.str()) from exception
        raise BrokerError(error.code(), error.str()) from exception
