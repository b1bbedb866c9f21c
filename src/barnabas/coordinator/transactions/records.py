"""The record of a transactional id in `__transaction_state`.

Version 0 is written while transaction.version is 0. Version 1, written from there on, has the
previous and the next producer id as tagged fields (KIP-890).
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


class TransactionRecord(CoordinatorRecord):
    """A record that this coordinator has decided on, with the metadata it was made from.

    The metadata has more than the record: `last_producer_epoch` is not in the log.
    """

    metadata: TransactionMetadata


def to_record(metadata: TransactionMetadata, transaction_version: int) -> TransactionRecord:
    """Returns the record, in the version that the cluster's transaction.version allows."""
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
    record = TransactionRecord(
        TransactionLogKey(transactional_id=metadata.transactional_id),
        value,
        1 if transaction_version >= 1 else 0,
    )
    record.metadata = metadata
    return record


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
            (topic.topic, index)
            for topic in value.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        started_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Returns the partitions by topic, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(partitions):
        topics.setdefault(topic, []).append(index)
    return topics
