"""kafka-python with transactions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafka import KafkaProducer, TopicPartition
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError
from tests.conformance.clients.client import DEADLINE_S, BrokerError, Sent
from tests.conformance.clients.group_client import Committed, Place
from tests.conformance.clients.kafka_python import refusals
from tests.conformance.clients.kafka_python_groups import KafkaPythonGroups, with_offsets
from tests.conformance.clients.transaction_client import (
    TIMEOUT_MS,
    DescribesTransactions,
    FencedError,
    Transaction,
    Transactional,
)


class KafkaPythonTransactional(Transactional):
    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=1,
            max_block_ms=DEADLINE_S * 1000,
        )
        with fencing():
            self._producer.init_transactions()

    def begin(self) -> None:
        with fencing():
            self._producer.begin_transaction()

    def send(self, topic: str, records: Sequence[Sent]) -> None:
        with fencing():
            futures = [
                self._producer.send(
                    topic, value=record.value, key=record.key, partition=record.partition
                )
                for record in records
            ]
            self._producer.flush(DEADLINE_S)
            for future in futures:
                future.get(DEADLINE_S)

    def send_offsets(self, offsets: Mapping[Place, Committed], identity: Any) -> None:
        with fencing():
            self._producer.send_offsets_to_transaction(with_offsets(offsets), identity)

    def commit(self) -> None:
        with fencing():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with fencing():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)


class KafkaPythonTransactions(KafkaPythonGroups, DescribesTransactions):
    def transactional(
        self, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> Transactional:
        return KafkaPythonTransactional(self.bootstrap, transactional_id, timeout_ms)

    def transactions(self) -> dict[str, str]:
        (listed,) = self._admin.list_transactions().values()
        return {each.transactional_id: each.state.value for each in listed}

    def describe_transaction(self, transactional_id: str) -> Transaction:
        with refusals():
            described = self._admin.describe_transactions([transactional_id])[transactional_id]
        return Transaction(
            described.state.value,
            described.producer_id,
            described.producer_epoch,
            described.transaction_timeout_ms,
            frozenset(Place(*place) for place in described.topic_partitions),
        )

    def open_producers(self, place: Place) -> dict[int, int]:
        with refusals():
            found = self._admin.describe_producers([TopicPartition(*place)])
        return {
            each.producer_id: each.current_transaction_start_offset
            for each in found[TopicPartition(*place)].active_producers
            if each.current_transaction_start_offset >= 0
        }


@contextmanager
def fencing() -> Iterator[None]:
    try:
        yield
    except (ProducerFencedError, InvalidProducerEpochError) as refused:
        raise FencedError(str(refused)) from refused
    except KafkaError as refused:
        # What it does not expect it tells in words.
        told = re.search(r"\[Error (\d+)\]", str(refused))
        raise BrokerError(int(told[1]) if told else None, str(refused)) from refused
