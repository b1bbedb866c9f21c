"""Transactions: list, describe, abort hanging ones, fence their producers."""

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.client.admin.requests import AdminRequests, one_request_per_item
from barnabas.client.admin.results import Results, error_or_none
from barnabas.client.admin.validation import UNSET, require_list
from barnabas.client.cluster import CoordinatorType
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transaction_descriptions import (
    DescribedTransactionState as DescribedTransaction,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)
from barnabas.wire.messages.transaction_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

_NO_COORDINATOR_EPOCH = -1


class TransactionState(Enum):
    """The state of a transaction, as the protocol spells it."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"
    DEAD = "Dead"
    UNKNOWN = "Unknown"

    @classmethod
    def _missing_(cls, value: object) -> "TransactionState":
        return cls.UNKNOWN


@dataclass(slots=True, frozen=True)
class TransactionListing:
    transactional_id: str
    producer_id: int
    state: TransactionState


@dataclass(slots=True, frozen=True)
class TransactionDescription:
    """A transaction; its start time is None if it is not open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: list[TopicPartition]


@dataclass(slots=True, frozen=True)
class AbortTransactionSpec:
    """The transaction to abort in a partition; `describe_producers` returns all of these."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None = None


@dataclass(slots=True, frozen=True)
class FencedProducer:
    """The producer id and epoch that the next producer of a transactional id starts from."""

    producer_id: int
    producer_epoch: int


def list_transactions(
    admin: AdminRequests,
    *,
    states: Iterable[TransactionState] = (),
    producer_ids: Iterable[int] = (),
    duration_ms: int = -1,
    transactional_id_pattern: str | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[int, list[TransactionListing]]]:
    """Returns the transactions that each broker coordinates, by broker id.

    They can be restricted to states, to producer ids, to those open for longer than
    `duration_ms`, and to ids that match a pattern (RE2).
    """
    request = ListTransactionsRequest(
        state_filters=[state.value for state in states],
        producer_id_filters=list(producer_ids),
        duration_filter=duration_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    deadline = admin.deadline(request_timeout)

    async def list_on(node: int | None, _: int) -> list[TransactionListing] | KafkaError:
        response = await admin.send(request, node, deadline=deadline)
        if response.error_code:
            return broker_error(response.error_code)
        return [
            TransactionListing(
                transaction.transactional_id,
                transaction.producer_id,
                TransactionState(transaction.transaction_state),
            )
            for transaction in response.transaction_states
        ]

    async def list_on_all() -> Results[int, list[TransactionListing]]:
        brokers = {broker: broker for broker in await admin.broker_ids(deadline)}
        return await admin.route_to_brokers(brokers, one_request_per_item(list_on), deadline)

    return list_on_all()


def describe_transactions(
    admin: AdminRequests, transactional_ids: list[str], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[str, TransactionDescription]]:
    """Returns state, producer and partitions of transactions, by transactional id."""
    require_list("transactional_ids", transactional_ids, str)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[str]
    ) -> Mapping[str, TransactionDescription | KafkaError]:
        assert node is not None, "transactions have coordinators"
        request = DescribeTransactionsRequest(transactional_ids=batch)
        response = await admin.send(request, node, deadline=deadline)
        return {
            transaction.transactional_id: _described(transaction, node)
            for transaction in response.transaction_states
        }

    return admin.route_to_coordinators(
        CoordinatorType.TRANSACTION, transactional_ids, exchange, deadline
    )


def abort_transaction(
    admin: AdminRequests, spec: AbortTransactionSpec, *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, None]:
    """Aborts a hanging transaction in one partition.

    It is for transactions whose coordinator has no record of them: `describe_producers` has all
    that the spec needs.
    """
    if not isinstance(spec, AbortTransactionSpec):
        raise TypeError(f"{spec!r} is not an AbortTransactionSpec")
    deadline = admin.deadline(request_timeout)
    partition, epoch = spec.topic_partition, spec.coordinator_epoch
    topic = WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
    marker = WritableTxnMarker(
        producer_id=spec.producer_id,
        producer_epoch=spec.producer_epoch,
        transaction_result=False,
        topics=[topic],
        coordinator_epoch=_NO_COORDINATOR_EPOCH if epoch is None else epoch,
    )

    async def exchange(
        leader: int | None, _: list[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        request = WriteTxnMarkersRequest(markers=[marker])
        response = await admin.send(request, leader, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): error_or_none(
                partition.error_code
            )
            for written in response.markers
            for topic in written.topics
            for partition in topic.partitions
        }

    async def abort() -> None:
        (await admin.route_to_leaders([partition], exchange, deadline)).all()

    return abort()


def fence_producers(
    admin: AdminRequests, transactional_ids: list[str], *, request_timeout: float = UNSET
) -> Coroutine[Any, Any, Results[str, FencedProducer]]:
    """Fences the producers that use these transactional ids; results are by id.

    Their open transactions are aborted.
    """
    require_list("transactional_ids", transactional_ids, str)
    deadline = admin.deadline(request_timeout)

    async def fence(node: int | None, transactional_id: str) -> FencedProducer | KafkaError:
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=admin.settings.request_timeout_ms,
        )
        response = await admin.send(request, node, deadline=deadline)
        if response.error_code:
            return broker_error(response.error_code)
        return FencedProducer(response.producer_id, response.producer_epoch)

    return admin.route_to_coordinators(
        CoordinatorType.TRANSACTION, transactional_ids, one_request_per_item(fence), deadline
    )


def _described(
    transaction: DescribedTransaction, coordinator_id: int
) -> TransactionDescription | KafkaError:
    if transaction.error_code:
        return broker_error(transaction.error_code)
    started_ms = transaction.transaction_start_time_ms
    return TransactionDescription(
        coordinator_id,
        TransactionState(transaction.transaction_state),
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.transaction_timeout_ms,
        started_ms if started_ms >= 0 else None,
        [
            TopicPartition(topic.topic, index)
            for topic in transaction.topics
            for index in topic.partitions
        ],
    )
