"""A transaction's conversation with its coordinators, in both of Kafka's flows."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from barnabas.client.cluster import Backoff, Cluster, CoordinatorType, Deadline
from barnabas.client.errors import KafkaError, KafkaException, broker_error
from barnabas.client.producer.sealing import NOBODY, Identity
from barnabas.client.producer.sender import Sender
from barnabas.client.producer.transaction import Phase, Transaction
from barnabas.client.settings import ProducerSettings
from barnabas.client.values import (
    ConsumerGroupMetadata,
    PreparedTransaction,
    TopicPartition,
    TopicPartitionTuple,
)
from barnabas.net.handshake import API_VERSIONS_REQUEST
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.wire.schema import Message

FEATURE = "transaction.version"
JOINED_BY_WRITING = 2
"""From this level of the feature on there is the new flow."""
_CONCURRENT_PAUSE_S = 0.02
"""The last transaction is being completed; that takes a broker a moment."""

# The newest versions of the old flow: later ones mean the new one.
OLD_PRODUCE = 11
OLD_END = 4
_OLD_OFFSETS = 4
_OFFSETS_BY_NAME = 5
_JOIN_BY_CLIENTS = 3

_PASSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.CONCURRENT_TRANSACTIONS})


class Senders(Protocol):
    """What is needed of the producer's core."""

    @property
    def cluster(self) -> Cluster: ...
    @property
    def sender(self) -> Sender: ...
    def step(self) -> None: ...
    async def drained(self, deadline: Deadline) -> None: ...


class Transactions:
    def __init__(self, settings: ProducerSettings, core: Senders, it: Transaction) -> None:
        assert settings.transactional_id is not None
        self._id = settings.transactional_id
        self._timeout_ms = settings.transaction_timeout_ms
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms)
        self._core = core
        self._it = it
        self._joining: asyncio.Task[None] | None = None

    async def init(self, deadline: Deadline) -> None:
        """Get an id; whatever an earlier producer of this transactional.id left open is aborted."""
        self._it.require("init_transactions")
        told = await self._core.cluster.send_request(
            API_VERSIONS_REQUEST, timeout_ms=deadline.remaining_ms()
        )
        levels = {each.name: each.max_version_level for each in told.finalized_features}
        self._it.is_joined_by_writing = levels.get(FEATURE, 0) >= JOINED_BY_WRITING
        await self._identify(NOBODY, deadline)
        self._it.end()

    def begin(self) -> None:
        self._it.begin()

    async def send_offsets(
        self, offsets: Sequence[TopicPartition], group: ConsumerGroupMetadata, deadline: Deadline
    ) -> None:
        """Make a group's offsets part of the transaction; where nothing was read there is none."""
        if not isinstance(group, ConsumerGroupMetadata):
            raise TypeError(f"expected ConsumerGroupMetadata, not {type(group).__name__}")
        self._it.require("send_offsets_to_transaction")
        offsets = [each for each in offsets if each.offset >= 0]
        if not offsets:
            return
        identity = self._core.sender.identity
        if not self._it.is_joined_by_writing and not self._it.has_offsets:
            await self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self._id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    group_id=group.group_id,
                ),
                deadline,
            )
        self._it.has_offsets = True
        newest = _OFFSETS_BY_NAME if self._it.is_joined_by_writing else _OLD_OFFSETS
        await self._ask(
            TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group.group_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                generation_id_or_member_epoch=group.generation_id,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=_by_topic(offsets),
            ),
            deadline,
            _first_error_of_offsets,
            coordinator=(CoordinatorType.GROUP, group.group_id),
            newest=newest,
        )

    async def commit(self, deadline: Deadline) -> None:
        self._it.require("commit_transaction")
        self._it.phase = Phase.COMMITTING
        await self._drain(deadline)
        if self._it.error is not None:
            raise KafkaException(self._it.error)
        await self._end(True, deadline)
        self._it.end()

    async def abort(self, deadline: Deadline) -> None:
        self._it.require("abort_transaction")
        self._it.phase = Phase.ABORTING
        self._core.sender.purge(
            KafkaError(KafkaError._PURGE_QUEUE, "the transaction is aborted"),
            KafkaError(KafkaError._PURGE_INFLIGHT, "the transaction is aborted"),
        )
        self._core.step()
        await self._drain(deadline)
        await self._end(False, deadline)
        sender = self._core.sender
        if not self._it.is_joined_by_writing and sender.has_gaps:
            # The broker cannot tell what is missing from what is late: begin another epoch.
            await self._identify(sender.identity, deadline)
        self._it.end()

    async def prepare(self, deadline: Deadline) -> PreparedTransaction:
        """Have every record written, and leave the transaction open for who will end it."""
        self._it.require("prepare_transaction")
        self._it.phase = Phase.PREPARING
        await self._drain(deadline)
        if self._it.error is not None:
            raise KafkaException(self._it.error)
        self._it.phase = Phase.PREPARED
        return self._prepared()

    async def complete(self, decided: PreparedTransaction, deadline: Deadline) -> None:
        """Commit what was prepared if it is what was decided on; else abort it."""
        self._it.require("complete_transaction")
        await self._end(decided == self._prepared(), deadline)
        self._it.end()

    def _prepared(self) -> PreparedTransaction:
        identity = self._core.sender.identity
        return PreparedTransaction(self._id, identity.producer_id, identity.epoch)

    def join(self) -> None:
        """In the old flow: tell the coordinator of partitions that the sender has waiting."""
        if self._it.to_join and self._joining is None:
            self._joining = asyncio.get_running_loop().create_task(self._join())

    # Requests

    async def _identify(self, last: Identity, deadline: Deadline) -> None:
        told = await self._ask(
            InitProducerIdRequest(
                transactional_id=self._id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=last.producer_id,
                producer_epoch=last.epoch,
            ),
            deadline,
        )
        self._core.sender.identify(Identity(told.producer_id, told.producer_epoch))

    async def _end(self, committed: bool, deadline: Deadline) -> None:
        if not self._it.is_empty:
            identity = self._core.sender.identity
            told = await self._ask(
                EndTxnRequest(
                    transactional_id=self._id,
                    producer_id=identity.producer_id,
                    producer_epoch=identity.epoch,
                    committed=committed,
                ),
                deadline,
                newest=None if self._it.is_joined_by_writing else OLD_END,
            )
            if told.producer_id >= 0 and self._it.is_joined_by_writing:
                self._core.sender.identify(Identity(told.producer_id, told.producer_epoch))

    async def _join(self) -> None:
        try:
            while self._it.to_join and self._it.phase in (
                Phase.OPEN,
                Phase.COMMITTING,
                Phase.PREPARING,
            ):
                places = set(self._it.to_join)
                identity = self._core.sender.identity
                await self._ask(
                    AddPartitionsToTxnRequest(
                        v3_and_below_transactional_id=self._id,
                        v3_and_below_producer_id=identity.producer_id,
                        v3_and_below_producer_epoch=identity.epoch,
                        v3_and_below_topics=_names(places),
                    ),
                    Deadline.after(self._timeout_ms),
                    _first_error_of_partitions,
                    newest=_JOIN_BY_CLIENTS,
                )
                self._it.joined |= places
                self._it.to_join -= places
        except KafkaException as failure:
            self._it.refused(failure.args[0])
            self._it.to_join.clear()
        finally:
            self._joining = None
        self._core.step()

    async def _ask(
        self,
        request: Message,
        deadline: Deadline,
        error_of: Callable[[Any], int] = lambda told: int(told.error_code),
        *,
        coordinator: tuple[CoordinatorType, str] | None = None,
        newest: int | None = None,
    ) -> Any:
        """The answer to a request that was granted.

        KafkaException: _TIMED_OUT may be tried again; others are fatal or need an abort.
        """
        kind, key = coordinator or (CoordinatorType.TRANSACTION, self._id)
        self._backoff.reset()
        while True:
            try:
                told = await self._core.cluster.send_to_coordinator(
                    kind, key, request, error_of, deadline=deadline, max_version=newest
                )
            except KafkaException as failure:
                raise KafkaException(self._explained(failure.args[0])) from None
            code = error_of(told)
            if code == ErrorCode.NONE:
                return told
            if code not in _PASSING and not ErrorCode.of(code).retriable:
                raise KafkaException(self._it.fail(code, broker_error(code).str()))
            pause_s = (
                _CONCURRENT_PAUSE_S
                if code == ErrorCode.CONCURRENT_TRANSACTIONS
                else self._backoff.next_ms() / 1000
            )
            if deadline.remaining_ms() <= pause_s * 1000:
                raise KafkaException(_late(broker_error(code).str()))
            await asyncio.sleep(pause_s)

    def _explained(self, error: KafkaError) -> KafkaError:
        if error.code() == KafkaError._TIMED_OUT or error.retriable():
            return _late(error.str())
        return self._it.fail(error.code(), error.str())

    async def _drain(self, deadline: Deadline) -> None:
        """Until the sender has nothing of this transaction any more, and no partition joins it."""
        try:
            await self._core.drained(deadline)
            if self._joining is not None:
                joining = asyncio.shield(self._joining)
                await asyncio.wait_for(joining, deadline.remaining_ms() / 1000)
        except TimeoutError:
            raise KafkaException(_late("records are still on their way")) from None


def _late(reason: str) -> KafkaError:
    return KafkaError(KafkaError._TIMED_OUT, f"not done in time: {reason}", retriable=True)


def _by_topic(offsets: Iterable[TopicPartition]) -> list[TxnOffsetCommitRequestTopic]:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for each in offsets:
        topic = topics.setdefault(each.topic, TxnOffsetCommitRequestTopic(name=each.topic))
        topic.partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=each.partition,
                committed_offset=each.offset,
                committed_leader_epoch=-1 if each.leader_epoch is None else each.leader_epoch,
                committed_metadata=each.metadata or "",
            )
        )
    return list(topics.values())


def _names(places: Iterable[TopicPartitionTuple]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for name, partition in sorted(places):
        topic = topics.setdefault(name, AddPartitionsToTxnTopic(name=name))
        topic.partitions.append(partition)
    return list(topics.values())


def _first_error_of_offsets(told: Any) -> int:
    codes = (each.error_code for topic in told.topics for each in topic.partitions)
    return next((code for code in codes if code), 0)


def _first_error_of_partitions(told: Any) -> int:
    codes = [
        each.partition_error_code
        for topic in told.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]
    # Where one partition is refused, the others were not even attempted.
    real = (code for code in codes if code and code != ErrorCode.OPERATION_NOT_ATTEMPTED)
    return next(real, next((code for code in codes if code), 0))
