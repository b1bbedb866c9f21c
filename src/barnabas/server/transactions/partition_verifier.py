"""The word of a transaction's coordinator, which may be this broker or another (KIP-890)."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.answer import Answer
from barnabas.coordinator.topics import TRANSACTIONS_TOPIC
from barnabas.coordinator.transactions.metadata import TopicPartition
from barnabas.coordinator.transactions.ports import Outcomes
from barnabas.coordinator.transactions.records import by_topic
from barnabas.server.transactions.broker_requests import Brokers, Couriers, Errand
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from barnabas.server.broker_node import Broker


class Verifications:
    """Asks the coordinator of a transaction before its records are appended here."""

    __slots__ = ("_broker", "_brokers", "couriers")

    def __init__(self, broker: "Broker", brokers: Brokers) -> None:
        self._broker = broker
        self._brokers = brokers
        self.couriers: Couriers[AddPartitionsToTxnTransaction] = Couriers(
            brokers,
            "transaction-verification",
            compose=lambda transactions: AddPartitionsToTxnRequest(transactions=transactions),
            read=_by_transaction,
            timeout_ms=lambda: broker.resolver.broker("request.timeout.ms"),
        )

    def verify_or_add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> Answer[Outcomes]:
        """By partition, whether it is in the transaction; with `add`, it is put there."""
        coordinator = self._broker.transactions
        index = coordinator.runtime.partition_of(transactional_id)
        leader = self._brokers.leader_of(TRANSACTIONS_TOPIC, index)
        if leader is None:
            return Answer.of(dict.fromkeys(partitions, ErrorCode.COORDINATOR_NOT_AVAILABLE))
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
        return self.couriers.send(leader, Errand(transactional_id, body, partitions))


def _by_transaction(response: AddPartitionsToTxnResponse) -> Mapping[Hashable, Outcomes]:
    if response.error_code != ErrorCode.NONE:
        code = ErrorCode.of(response.error_code)
        if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            code = ErrorCode.INVALID_TXN_STATE  # it is this broker that may not ask, not the client
        raise KafkaError(code, "The transaction's coordinator answers none of it.")
    return {
        each.transactional_id: {
            (topic.name, partition.partition_index): ErrorCode.of(partition.partition_error_code)
            for topic in each.topic_results
            for partition in topic.results_by_partition
        }
        for each in response.results_by_transaction
    }
