"""Transactions: list, describe, abort ones that hang, fence their producers."""

from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.client.admin.calls import (
    UNSET,
    Calls,
    Results,
    outcome_of,
    require_list,
)
from barnabas.client.admin.routes import one_by_one
from barnabas.client.cluster import Coordinator, Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.values import Partition, TopicPartition
from barnabas.wire.messages import describe_transactions
from barnabas.wire.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_transactions import ListTransactionsRequest
from barnabas.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

_NO_COORDINATOR_EPOCH = -1


class TransactionState(Enum):
    """Where a transaction stands, in the broker's words."""

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
    """A transaction; None for the start of one that is not open."""

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int | None
    topic_partitions: list[TopicPartition]


@dataclass(slots=True, frozen=True)
class AbortTransactionSpec:
    """Whose transaction to abort in a partition; `describe_producers` tells all of it."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None = None


@dataclass(slots=True, frozen=True)
class FencedProducer:
    """What the next producer of a transactional id begins from."""

    producer_id: int
    producer_epoch: int


class TransactionCalls(Calls):
    def list_transactions(
        self,
        *,
        states: Iterable[TransactionState] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        transactional_id_pattern: str | None = None,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[int, list[TransactionListing]]]:
        """The transactions that each broker coordinates, by its id.

        They may be narrowed down to those in some states, of some producers, open for longer
        than a duration, or whose id matches a pattern (RE2).
        """
        request = ListTransactionsRequest(
            state_filters=[state.value for state in states],
            producer_id_filters=list(producer_ids),
            duration_filter=duration_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        return self._list_transactions(request, self._deadline(request_timeout))

    async def _list_transactions(
        self, request: ListTransactionsRequest, deadline: Deadline
    ) -> Results[int, list[TransactionListing]]:
        async def listed(node: int | None, _: int) -> list[TransactionListing] | KafkaError:
            response = await self._routes.ask(request, node, deadline=deadline)
            if response.error_code:
                return told_by_broker(response.error_code)
            return [
                TransactionListing(
                    each.transactional_id,
                    each.producer_id,
                    TransactionState(each.transaction_state),
                )
                for each in response.transaction_states
            ]

        brokers = {broker: broker for broker in await self._routes.brokers(deadline)}
        return Results(await self._routes.by_broker(brokers, one_by_one(listed), deadline))

    def describe_transactions(
        self, transactional_ids: list[str], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[str, TransactionDescription]]:
        """State, producer and partitions of transactions, as their coordinators know them."""
        require_list("transactional_ids", transactional_ids, str)
        return self._describe_transactions(transactional_ids, self._deadline(request_timeout))

    async def _describe_transactions(
        self, transactional_ids: list[str], deadline: Deadline
    ) -> Results[str, TransactionDescription]:
        async def exchange(
            node: int | None, asked: list[str]
        ) -> Mapping[str, TransactionDescription | KafkaError]:
            assert node is not None, "transactions have coordinators"
            request = DescribeTransactionsRequest(transactional_ids=asked)
            response = await self._routes.ask(request, node, deadline=deadline)
            return {
                each.transactional_id: _described(each, node)
                for each in response.transaction_states
            }

        return Results(
            await self._routes.by_coordinator(
                Coordinator.TRANSACTION, transactional_ids, exchange, deadline
            )
        )

    def abort_transaction(
        self, spec: AbortTransactionSpec, *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, None]:
        """Abort a transaction in one partition, where its coordinator has forgotten it."""
        if not isinstance(spec, AbortTransactionSpec):
            raise TypeError(f"{spec!r} is no AbortTransactionSpec")
        return self._abort_transaction(spec, self._deadline(request_timeout))

    async def _abort_transaction(self, spec: AbortTransactionSpec, deadline: Deadline) -> None:
        epoch = spec.coordinator_epoch
        given: Partition = spec.topic_partition.topic, spec.topic_partition.partition
        topic = WritableTxnMarkerTopic(name=given[0], partition_indexes=[given[1]])
        marker = WritableTxnMarker(
            producer_id=spec.producer_id,
            producer_epoch=spec.producer_epoch,
            transaction_result=False,
            topics=[topic],
            coordinator_epoch=_NO_COORDINATOR_EPOCH if epoch is None else epoch,
        )

        async def exchange(
            leader: int | None, _: list[Partition]
        ) -> Mapping[Partition, KafkaError | None]:
            request = WriteTxnMarkersRequest(markers=[marker])
            response = await self._routes.ask(request, leader, deadline=deadline)
            return {
                (topic.name, each.partition_index): outcome_of(each.error_code)
                for written in response.markers
                for topic in written.topics
                for each in topic.partitions
            }

        Results(await self._routes.by_leader([given], exchange, deadline)).all()

    def fence_producers(
        self, transactional_ids: list[str], *, request_timeout: float = UNSET
    ) -> Coroutine[Any, Any, Results[str, FencedProducer]]:
        """Shut out whoever uses these ids now; transactions that are open are aborted."""
        require_list("transactional_ids", transactional_ids, str)
        return self._fence_producers(transactional_ids, self._deadline(request_timeout))

    async def _fence_producers(
        self, transactional_ids: list[str], deadline: Deadline
    ) -> Results[str, FencedProducer]:
        timeout_ms = self._routes.settings.request_timeout_ms

        async def fence(node: int | None, transactional_id: str) -> FencedProducer | KafkaError:
            request = InitProducerIdRequest(
                transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
            )
            told = await self._routes.ask(request, node, deadline=deadline)
            if told.error_code:
                return told_by_broker(told.error_code)
            return FencedProducer(told.producer_id, told.producer_epoch)

        return Results(
            await self._routes.by_coordinator(
                Coordinator.TRANSACTION, transactional_ids, one_by_one(fence), deadline
            )
        )


def _described(
    told: describe_transactions.TransactionState, coordinator_id: int
) -> TransactionDescription | KafkaError:
    if told.error_code:
        return told_by_broker(told.error_code)
    started_ms = told.transaction_start_time_ms
    return TransactionDescription(
        coordinator_id,
        TransactionState(told.transaction_state),
        told.producer_id,
        told.producer_epoch,
        told.transaction_timeout_ms,
        started_ms if started_ms >= 0 else None,
        [TopicPartition(topic.topic, index) for topic in told.topics for index in topic.partitions],
    )
