"""Verifies that a transaction contains a partition, with the coordinator's broker (KIP-890)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.records import TRANSACTIONS_TOPIC
from barnabas.coordinator.transactions.markers import PartitionErrorCodes
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.records import by_topic
from barnabas.server.transactions.broker_requests import (
    BrokerDirectory,
    BrokerRequestQueues,
    RequestItem,
)
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.server.nodes import BrokerNode


class PartitionVerifier:
    """Verifies partitions of transactions with their coordinators, or adds them.

    The coordinator may be this broker or another.
    """

    __slots__ = ("_broker", "_brokers", "request_queues")

    def __init__(self, broker: "BrokerNode", brokers: BrokerDirectory) -> None:
        self._broker = broker
        self._brokers = brokers
        self.request_queues: BrokerRequestQueues[AddPartitionsToTxnTransaction] = (
            BrokerRequestQueues(
                brokers,
                "transaction-verification",
                compose=lambda transactions: AddPartitionsToTxnRequest(transactions=transactions),
                read=_by_transaction,
                timeout_ms=lambda: broker.resolver.broker("request.timeout.ms"),
            )
        )

    def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> PendingResponse[PartitionErrorCodes]:
        """Returns, by partition, NONE if the transaction contains it, or the error.

        With `add`, the coordinator adds partitions that it does not contain.
        """
        coordinator = self._broker.transactions
        index = coordinator.runtime.partition_of(transactional_id)
        leader = self._brokers.leader_of(TRANSACTIONS_TOPIC, index)
        if leader is None:
            return PendingResponse.completed(
                dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            )
        if leader == self._brokers.node_id:
            return coordinator.verify_or_add(
                transactional_id, producer_id, producer_epoch, partitions, add=add
            )
        body = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            verify_only=not add,
            topics=[
                AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic(partitions).items()
            ],
        )
        return self.request_queues.send(leader, RequestItem(transactional_id, body, partitions))


def _by_transaction(response: AddPartitionsToTxnResponse) -> Mapping[Hashable, PartitionErrorCodes]:
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            code = ErrorCode.INVALID_TXN_STATE  # this broker, not the client, is not authorized
        raise KafkaError(code, "The transaction coordinator rejected the whole request.")
    return {
        result.transactional_id: {
            (topic.name, partition.partition_index): ErrorCode.of(partition.partition_error_code)
            for topic in result.topic_results
            for partition in topic.results_by_partition
        }
        for result in response.results_by_transaction
    }
