"""AddPartitionsToTxn and AddOffsetsToTxn: a partition must be in the transaction before records
are; what is not in it would not be told its outcome.
"""

from collections.abc import Collection, Iterable
from typing import Final

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.topics import INTERNAL_TOPICS
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionMetadata,
    TransactionState,
)
from barnabas.coordinator.transactions.ports import PartitionErrorCodes
from barnabas.coordinator.transactions.errors import (
    concurrent,
    fenced,
    not_its_producer,
    unknown,
)
from barnabas.coordinator.transactions.state import TransactionCoordinatorState
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FIRST_VERSION_FOR_BROKERS: Final = 4
"""The version of AddPartitionsToTxn from which on brokers send it, for many transactions."""


def add_partitions(
    transactions: TransactionCoordinatorState,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
    client_version: int,
) -> Decision[PartitionErrorCodes]:
    """Add all of them; a transaction begins with the first."""
    current = transactions.by_id.get(transactional_id)
    if current is None:
        raise unknown(transactional_id)
    if current.is_ending:
        # Before who it is: the producer may have been told already which id and epoch come next.
        raise concurrent(current)
    _check_producer(current, producer_id, producer_epoch)
    added: PartitionErrorCodes = dict.fromkeys(partitions, ErrorCode.NONE)
    if current.state is TransactionState.ONGOING and current.partitions.issuperset(partitions):
        return Decision(added)
    joined = current.joined_by(
        partitions, client_version=client_version, now_ms=transactions.now_ms()
    )
    return Decision(added, [transactions.record(joined)])


def verify_partitions(
    transactions: TransactionCoordinatorState,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: Collection[TopicPartition],
) -> PartitionErrorCodes:
    """Which of them are in the transaction (KIP-890)."""
    current = transactions.by_id.get(transactional_id)
    if current is None:
        raise unknown(transactional_id)
    _check_producer(current, producer_id, producer_epoch)
    if current.is_ending:
        raise concurrent(current)
    return {
        each: ErrorCode.NONE if each in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in partitions
    }


def not_to_be_added(
    image: MetadataImage, partitions: Iterable[TopicPartition], *, is_client: bool
) -> PartitionErrorCodes:
    """Those that are not there, or that a client has no business with."""
    refusals: PartitionErrorCodes = {}
    for name, index in partitions:
        topic = image.topics.by_name(name)
        if is_client and name in INTERNAL_TOPICS:
            refusals[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or index not in topic.partitions:
            refusals[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return refusals


def asked(
    request: AddPartitionsToTxnRequest, api_version: int
) -> list[AddPartitionsToTxnTransaction]:
    """What is asked for, by transaction: a client has but one."""
    if api_version >= FIRST_VERSION_FOR_BROKERS:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def told(outcomes: PartitionErrorCodes) -> list[AddPartitionsToTxnTopicResult]:
    """What came of it, by topic."""
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in outcomes.items():
        topic = topics.get(name)
        if topic is None:
            topic = AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
            topics[name] = topic
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(topics.values())


def _check_producer(current: TransactionMetadata, producer_id: int, producer_epoch: int) -> None:
    if current.producer_id != producer_id:
        raise not_its_producer(current, producer_id)
    if current.producer_epoch != producer_epoch:
        raise fenced(current, producer_id, producer_epoch)
