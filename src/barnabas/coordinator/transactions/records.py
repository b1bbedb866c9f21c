"""How a transactional id is kept in `__transaction_state`.

v0 while transaction.version is 0; v1, from there on, has the ids before and after as tagged fields
(KIP-890).
"""

from collections.abc import Iterable
from typing import Final

from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from barnabas.wire.messages.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

TRANSACTION_RECORDS: Final = RecordTypes([(TransactionLogKey, TransactionLogValue)])


def to_record(metadata: TransactionMetadata, transaction_version: int) -> CoordinatorRecord:
    """The record, in the version that the cluster's transaction.version allows."""
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None,
        transaction_last_update_timestamp_ms=metadata.updated_ms,
        transaction_start_timestamp_ms=metadata.started_ms,
    )
    if metadata.state is not TransactionState.EMPTY:
        value.transaction_partitions = [
            PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic(metadata.partitions).items()
        ]
    if transaction_version >= 1:
        value.previous_producer_id = metadata.previous_producer_id
        value.next_producer_id = metadata.next_producer_id
        value.client_transaction_version = metadata.client_version
    return CoordinatorRecord(
        TransactionLogKey(transactional_id=metadata.transactional_id),
        value,
        1 if transaction_version >= 1 else 0,
    )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id), None)


def from_record(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        updated_ms=value.transaction_last_update_timestamp_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            (each.topic, index)
            for each in value.transaction_partitions or ()
            for index in each.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The partitions by topic, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
