"""Sends the requests of a transaction to its coordinators, in both protocol versions."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from barnabas.client.cluster import Backoff, ClusterClient, CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.producer.batch_finisher import ProducerIdAndEpoch
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.transaction import ProducerTransaction, TxnState
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import (
    ConsumerGroupMetadata,
    PartitionKey,
    PreparedTransaction,
    TopicPartition,
)
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from barnabas.wire.schema import Message

TRANSACTION_VERSION_FEATURE = "transaction.version"
TRANSACTION_V2 = 2
"""The level of the feature from which on partitions are added by their first batch."""
_CONCURRENT_PAUSE_S = 0.02
"""While the previous transaction is being completed, which takes the broker a moment."""

# The last versions of the requests that mean V1: later ones mean V2.
LAST_V1_PRODUCE = 11
LAST_V1_END_TXN = 4
_LAST_V1_OFFSETS = 4
_LAST_OFFSETS_BY_NAME = 5
_LAST_CLIENT_ADD_PARTITIONS = 3

_RETRIABLE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.CONCURRENT_TRANSACTIONS})


class TransactionalCore(Protocol):
    """The part of `ProducerCore` that is needed here."""

    @property
    def cluster(self) -> ClusterClient: ...
    @property
    def sender(self) -> Sender: ...
    def step(self) -> None: ...
    async def drain(self, deadline: Deadline) -> None: ...


class TransactionManager:
    def __init__(
        self, settings: ProducerSettings, core: TransactionalCore, transaction: ProducerTransaction
    ) -> None:
        assert settings.transactional_id is not None
        self._id = settings.transactional_id
        self._timeout_ms = settings.transaction_timeout_ms
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._core = core
        self._transaction = transaction
        self._adding: asyncio.Task[None] | None = None

    async def init(self, deadline: Deadline) -> None:
        """Gets a producer id. Open transactions of earlier producers with this id are aborted."""
        self._transaction.require("init_transactions")
        response = await self._core.cluster.send_request(
            API_VERSIONS_REQUEST, timeout_ms=deadline.remaining_ms()
        )
        levels = {
            feature.name: feature.max_version_level for feature in response.finalized_features
        }
        self._transaction.is_v2 = levels.get(TRANSACTION_VERSION_FEATURE, 0) >= TRANSACTION_V2
        await self._init_producer_id(ProducerIdAndEpoch.NONE, deadline)
        self._transaction.end()

    def begin(self) -> None:
        self._transaction.begin()

    async def send_offsets(
        self, offsets: Sequence[TopicPartition], group: ConsumerGroupMetadata, deadline: Deadline
    ) -> None:
        """Adds a group's offsets to the transaction, except of partitions without a position."""
        if not isinstance(group, ConsumerGroupMetadata):
            raise TypeError(f"expected ConsumerGroupMetadata, not {type(group).__name__}")
        self._transaction.require("send_offsets_to_transaction")
        offsets = [offset for offset in offsets if offset.offset >= 0]
        if not offsets:
            return
        producer = self._core.sender.producer
        if not self._transaction.is_v2 and not self._transaction.has_offsets:
            await self._send(
                AddOffsetsToTxnRequest(
                    transactional_id=self._id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    group_id=group.group_id,
                ),
                deadline,
            )
        self._transaction.has_offsets = True
        max_version = _LAST_OFFSETS_BY_NAME if self._transaction.is_v2 else _LAST_V1_OFFSETS
        await self._send(
            TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group.group_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                generation_id_or_member_epoch=group.generation_id,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=_offset_topics(offsets),
            ),
            deadline,
            _first_error_of_offsets,
            coordinator=(CoordinatorType.GROUP, group.group_id),
            max_version=max_version,
        )

    async def commit(self, deadline: Deadline) -> None:
        self._transaction.require("commit_transaction")
        self._transaction.state = TxnState.COMMITTING
        await self._drain(deadline)
        if self._transaction.error is not None:
            raise KafkaException(self._transaction.error)
        await self._end(True, deadline)
        self._transaction.end()

    async def abort(self, deadline: Deadline) -> None:
        self._transaction.require("abort_transaction")
        self._transaction.state = TxnState.ABORTING
        self._core.sender.purge(
            KafkaError(KafkaError._PURGE_QUEUE, "the transaction is aborted"),
            KafkaError(KafkaError._PURGE_INFLIGHT, "the transaction is aborted"),
        )
        self._core.step()
        await self._drain(deadline)
        await self._end(False, deadline)
        sender = self._core.sender
        if not self._transaction.is_v2 and sender.has_gaps:
            # The broker cannot tell missing batches from late ones: start another epoch.
            await self._init_producer_id(sender.producer, deadline)
        self._transaction.end()

    async def prepare(self, deadline: Deadline) -> PreparedTransaction:
        """Waits until every record is written, and leaves the transaction open."""
        self._transaction.require("prepare_transaction")
        self._transaction.state = TxnState.PREPARING
        await self._drain(deadline)
        if self._transaction.error is not None:
            raise KafkaException(self._transaction.error)
        self._transaction.state = TxnState.PREPARED
        return self._prepared()

    async def complete(self, expected: PreparedTransaction, deadline: Deadline) -> None:
        """Commits the prepared transaction if it is the expected one; else aborts it."""
        self._transaction.require("complete_transaction")
        await self._end(expected == self._prepared(), deadline)
        self._transaction.end()

    def _prepared(self) -> PreparedTransaction:
        producer = self._core.sender.producer
        return PreparedTransaction(self._id, producer.producer_id, producer.epoch)

    def add_new_partitions(self) -> None:
        """In V1: registers the partitions that the sender waits for with the coordinator."""
        if self._transaction.new_partitions and self._adding is None:
            self._adding = asyncio.get_running_loop().create_task(self._add_partitions())

    # Requests

    async def _init_producer_id(self, last: ProducerIdAndEpoch, deadline: Deadline) -> None:
        response = await self._send(
            InitProducerIdRequest(
                transactional_id=self._id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=last.producer_id,
                producer_epoch=last.epoch,
            ),
            deadline,
        )
        self._core.sender.set_producer_id(
            ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        )

    async def _end(self, committed: bool, deadline: Deadline) -> None:
        if not self._transaction.is_empty:
            producer = self._core.sender.producer
            response = await self._send(
                EndTxnRequest(
                    transactional_id=self._id,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.epoch,
                    committed=committed,
                ),
                deadline,
                max_version=None if self._transaction.is_v2 else LAST_V1_END_TXN,
            )
            if response.producer_id >= 0 and self._transaction.is_v2:
                self._core.sender.set_producer_id(
                    ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
                )

    async def _add_partitions(self) -> None:
        try:
            while self._transaction.new_partitions and self._transaction.can_send:
                topic_partitions = set(self._transaction.new_partitions)
                producer = self._core.sender.producer
                await self._send(
                    AddPartitionsToTxnRequest(
                        v3_and_below_transactional_id=self._id,
                        v3_and_below_producer_id=producer.producer_id,
                        v3_and_below_producer_epoch=producer.epoch,
                        v3_and_below_topics=_topics(topic_partitions),
                    ),
                    Deadline.after(self._timeout_ms),
                    _first_error_of_partitions,
                    max_version=_LAST_CLIENT_ADD_PARTITIONS,
                )
                self._transaction.partitions |= topic_partitions
                self._transaction.new_partitions -= topic_partitions
        except KafkaException as failure:
            self._transaction.on_batch_failed(failure.args[0])
            self._transaction.new_partitions.clear()
        finally:
            self._adding = None
        self._core.step()

    async def _send(
        self,
        request: Message,
        deadline: Deadline,
        error_of: Callable[[Any], int] = lambda response: int(response.error_code),
        *,
        coordinator: tuple[CoordinatorType, str] | None = None,
        max_version: int | None = None,
    ) -> Any:
        """Returns the response to a request that succeeded.

        Raises KafkaException: _TIMED_OUT may be tried again; others are fatal or need an abort.
        """
        kind, key = coordinator or (CoordinatorType.TRANSACTION, self._id)
        self._backoff.reset()
        while True:
            try:
                response = await self._core.cluster.send_to_coordinator(
                    kind, key, request, error_of, deadline=deadline, max_version=max_version
                )
            except KafkaException as failure:
                raise KafkaException(self._as_transaction_error(failure.args[0])) from None
            code = error_of(response)
            if code == ErrorCode.NONE:
                return response
            if code not in _RETRIABLE and not ErrorCode.of(code).retriable:
                raise KafkaException(self._transaction.fail(code, broker_error(code).str()))
            pause_s = (
                _CONCURRENT_PAUSE_S
                if code == ErrorCode.CONCURRENT_TRANSACTIONS
                else self._backoff.next_ms() / 1000
            )
            if deadline.remaining_ms() <= pause_s * 1000:
                raise KafkaException(_timeout_error(broker_error(code).str()))
            await asyncio.sleep(pause_s)

    def _as_transaction_error(self, error: KafkaError) -> KafkaError:
        if error.code() == KafkaError._TIMED_OUT or error.retriable():
            return _timeout_error(error.str())
        return self._transaction.fail(error.code(), error.str())

    async def _drain(self, deadline: Deadline) -> None:
        """Waits until the sender is drained and no partition is being added."""
        try:
            await self._core.drain(deadline)
            if self._adding is not None:
                adding = asyncio.shield(self._adding)
                await asyncio.wait_for(adding, deadline.remaining_ms() / 1000)
        except TimeoutError:
            raise KafkaException(_timeout_error("records are still in flight")) from None


def _timeout_error(reason: str) -> KafkaError:
    return KafkaError(KafkaError._TIMED_OUT, f"not done in time: {reason}", retriable=True)


def _offset_topics(offsets: Iterable[TopicPartition]) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for offset in offsets:
        topic = topics.setdefault(offset.topic, TxnOffsetCommitRequestTopic(name=offset.topic))
        topic.partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=offset.partition,
                committed_offset=offset.offset,
                committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                committed_metadata=offset.metadata or "",
            )
        )
    return list(topics.values())


def _topics(topic_partitions: Iterable[PartitionKey]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, partition in sorted(topic_partitions):
        topic = topics.setdefault(name, AddPartitionsToTxnTopic(name=name))
        topic.partitions.append(partition)
    return list(topics.values())


def _first_error_of_offsets(response: Any) -> int:
    codes = (partition.error_code for topic in response.topics for partition in topic.partitions)
    return next((code for code in codes if code), 0)


def _first_error_of_partitions(response: Any) -> int:
    codes = [
        partition.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    ]
    # If one partition is rejected, the others are not attempted.
    actual = (code for code in codes if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED)
    return next(actual, next((code for code in codes if code), 0))
