"""A transactional producer of transaction version 1 or 2 (KIP-890).

In version 1 the producer adds every partition to the transaction before it writes to it, and the
epoch stays the same for the next transaction: an abandoned request that arrives late would belong
to the next transaction. In version 2 the broker adds the partitions, and the end of a transaction
bumps the epoch, which fences late requests.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.coordinator.clients import offsets
from tests.simulation.coordinator.clients.client import COORDINATOR_ERRORS, Client
from tests.simulation.coordinator.clients.partition_work import Identity
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.schema import Message

ALL_IN_SYNC = -1
TIMEOUT_MS = (400, 3_000)
RETRY_FOR_MS = (0, 2_000, 9_000)
"""The timeout of a request, and how long requests are retried before the transaction is aborted;
one of each, at random."""

INIT, ADD_PARTITIONS, ADD_OFFSETS = 4, 3, 3
PRODUCE = {1: 11, 2: 12}
COMMIT_OFFSETS = {1: 3, 2: 5}
END = {1: 4, 2: 5}

RETRIABLE_ERRORS = COORDINATOR_ERRORS | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
FENCED_ERRORS = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)

CodeOf = Callable[[Any], int]


class Fenced(Exception):  # noqa: N818 - the domain's word for it
    """Another producer has this id, or the coordinator has ended the transaction."""


class Abortable(Exception):  # noqa: N818 - the domain's word for it
    """The transaction cannot be committed and must be aborted."""


class Producer:
    """One producer instance, with one request in flight, which it retries."""

    def __init__(
        self, client: Client, transactional_id: str, *, txn_version: int, timeout_ms: int
    ) -> None:
        self.transactional_id = transactional_id
        self._client = client
        self._txn_version = txn_version
        self._timeout_ms = timeout_ms
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[object] = set()
        """The partitions and groups that may be part of the transaction."""
        self._has_unacknowledged = False
        """Whether the log may have records that were not acknowledged."""

    @property
    def identity(self) -> tuple[str, int, int]:
        return self.transactional_id, self._producer_id, self._epoch

    async def init(self, *, bump_epoch: bool = False) -> None:
        """Gets a producer id; with `bump_epoch`, the next epoch of the current one (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        if bump_epoch:
            request.producer_id, request.producer_epoch = self._producer_id, self._epoch
        response, code = await self._send_with_retries(request, INIT, _code, has_deadline=False)
        self._require(code)
        self._become(response.producer_id, response.producer_epoch)

    async def produce(self, partition: TopicPartition, values: list[str]) -> None:
        """Produces one batch."""
        if self._txn_version == 1 and partition not in self._added:
            await self._add_partition(partition)
            await self._pause_sometimes()
        self._added.add(partition)
        topic, index = partition
        sequence = self._sequences.get(partition, 0)
        now_ms = self._client.now_ms
        batch = build_batch(
            [Record(0, now_ms, None, value.encode(), []) for value in values],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        records = [PartitionProduceData(index=index, records=memoryview(batch))]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=ALL_IN_SYNC,
            timeout_ms=2_000,
            topic_data=[TopicProduceData(name=topic, partition_data=records)],
        )
        self._has_unacknowledged = True
        _, code = await self._send_with_retries(request, PRODUCE[self._txn_version], _produce_code)
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)
        self._has_unacknowledged = False
        self._sequences[partition] = sequence + len(values)

    async def send_offsets(self, identity: Identity, positions: dict[TopicPartition, int]) -> None:
        """Adds offsets to the transaction."""
        if self._txn_version == 1 and identity.group_id not in self._added:
            self._added.add(identity.group_id)
            transactional_id, producer_id, epoch = self.identity
            request: Message = AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=identity.group_id,
            )
            _, code = await self._send_with_retries(request, ADD_OFFSETS, _code)
            self._require(code)
            await self._pause_sometimes()
        self._added.add(identity.group_id)
        request = offsets.txn_commit_request(identity, positions, *self.identity)
        _, code = await self._send_with_retries(
            request, COMMIT_OFFSETS[self._txn_version], _offsets_code
        )
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)

    async def end(self, *, committed: bool) -> None:
        """Commits or aborts, with retries until there is a response."""
        if not self._added:
            return
        transactional_id, producer_id, epoch = self.identity
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        response, code = await self._send_with_retries(
            request, END[self._txn_version], _code, has_deadline=False
        )
        never_began = (
            code == ErrorCode.INVALID_TXN_STATE and not committed and self._txn_version == 1
        )
        if not never_began:
            self._require(code)
        self._added.clear()
        if self._txn_version == 2:
            self._become(response.producer_id, response.producer_epoch)
        elif self._has_unacknowledged:
            # Only a new epoch fences requests that may still arrive.
            await self.init(bump_epoch=True)

    async def _add_partition(self, partition: TopicPartition) -> None:
        self._added.add(partition)
        topic, index = partition
        transactional_id, producer_id, epoch = self.identity
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        _, code = await self._send_with_retries(request, ADD_PARTITIONS, _added_code)
        self._require(code)

    async def _pause_sometimes(self) -> None:
        """Sometimes waits between adding a partition and writing to it."""
        if self._client.chance(0.3):
            await self._client.sleep(self._client.between(10, 500))

    async def _send_with_retries(
        self, request: Message, version: int, code_of: CodeOf, *, has_deadline: bool = True
    ) -> tuple[Any, int]:
        """Retries until there is a response without a retriable error."""
        client = self._client
        until_ms = client.now_ms + client.world.random.choice(RETRY_FOR_MS)
        while True:
            try:
                timeout_ms = client.world.random.choice(TIMEOUT_MS)
                response = await client.send_request(
                    request, version, timeout_ms=timeout_ms, may_arrive_late=self._txn_version == 2
                )
            except Unreachable:
                pass
            else:
                code = code_of(response)
                if code not in RETRIABLE_ERRORS:
                    return response, code
            if has_deadline and client.now_ms > until_ms:
                raise Abortable("the retries took too long")
            await client.back_off()

    def _require(self, code: int) -> None:
        """Raises for an error that cannot be retried."""
        if code in FENCED_ERRORS:
            raise Fenced(ErrorCode(code).name)
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._producer_id, self._epoch = producer_id, epoch
            self._sequences.clear()
        self._added.clear()
        self._has_unacknowledged = False


def _code(response: Any) -> int:
    return response.error_code


def _produce_code(response: Any) -> int:
    return response.responses[0].partition_responses[0].error_code


def _added_code(response: Any) -> int:
    return response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def _offsets_code(response: Any) -> int:
    return next(
        (
            partition.error_code
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        ),
        ErrorCode.NONE,
    )
