"""AddPartitionsToTxn (key 24) and AddOffsetsToTxn (key 25).

A partition must be in the transaction before records are written to it: a partition that is not
in the transaction would get no marker.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import (
    TopicPartition,
    TransactionContext,
    TransactionMetadata,
    TransactionState,
    concurrent_transactions,
    fenced,
    other_producer_id,
    unknown_transactional_id,
)
from barnabas.coordinator.transactions.records import to_record
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.state import TransactionCoordinatorState

FIRST_VERSION_FOR_BROKERS: Final = 4
"""The version of AddPartitionsToTxn from which on brokers send it, for many transactions."""


@dataclass(slots=True, frozen=True)
class TransactionPartitions:
    """The partitions that a producer adds to its transaction, or that a broker verifies."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: Collection[TopicPartition]
    client_version: int | None
    """The transaction version of the client that adds them; None to verify them."""


def add_partitions(
    request: TransactionPartitions,
    state: "TransactionCoordinatorState",
    context: TransactionContext,
) -> CoordinatorDecision[PartitionErrorCodes]:
    """Adds all partitions. A transaction begins with its first partition."""
    assert request.client_version is not None
    current = state.by_id.get(request.transactional_id)
    if current is None:
        raise unknown_transactional_id(request.transactional_id)
    if current.is_ending:
        # Checked before the producer: it may know the id and epoch that come next already.
        raise concurrent_transactions(current)
    _check_producer(request, current)
    partitions = request.partitions
    response: PartitionErrorCodes = dict.fromkeys(partitions, ErrorCode.NONE)
    if current.state is TransactionState.ONGOING and current.partitions.issuperset(partitions):
        return CoordinatorDecision((), response)
    extended = current.with_partitions(
        partitions, client_version=request.client_version, now_ms=context.now_ms
    )
    return CoordinatorDecision([to_record(extended, context.transaction_version)], response)


def verify_partitions(
    request: TransactionPartitions, state: "TransactionCoordinatorState"
) -> PartitionErrorCodes:
    """Returns which of the partitions are in the transaction (KIP-890)."""
    current = state.by_id.get(request.transactional_id)
    if current is None:
        raise unknown_transactional_id(request.transactional_id)
    _check_producer(request, current)
    if current.is_ending:
        raise concurrent_transactions(current)
    return {
        partition: ErrorCode.NONE
        if partition in current.partitions
        else ErrorCode.TRANSACTION_ABORTABLE
        for partition in request.partitions
    }


def partition_errors(
    partitions: Iterable[TopicPartition], image: MetadataImage, *, denied_topics: Collection[str]
) -> PartitionErrorCodes:
    """Returns the errors of partitions that do not exist, or that clients may not write to."""
    errors: PartitionErrorCodes = {}
    for name, index in partitions:
        topic = image.topics.by_name(name)
        if name in denied_topics:
            errors[name, index] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or index not in topic.partitions:
            errors[name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def transactions_of(
    request: AddPartitionsToTxnRequest, api_version: int
) -> list[AddPartitionsToTxnTransaction]:
    """Returns the partitions of the request by transaction. A client has one transaction."""
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


def topic_results(codes: PartitionErrorCodes) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, AddPartitionsToTxnTopicResult] = {}
    for (name, index), code in codes.items():
        topic = topics.get(name)
        if topic is None:
            topic = AddPartitionsToTxnTopicResult(name=name, results_by_partition=[])
            topics[name] = topic
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
        )
    return list(topics.values())


def _check_producer(request: TransactionPartitions, current: TransactionMetadata) -> None:
    if current.producer_id != request.producer_id:
        raise other_producer_id(current, request.producer_id)
    if current.producer_epoch != request.producer_epoch:
        raise fenced(current, request.producer_id, request.producer_epoch)
