"""A transactional producer, by the older flow (TV1) or the newer one (TV2, KIP-890).

In the older one every partition is added to the transaction before it is written to, and the
epoch stays the same from one transaction to the next: a request that arrived after its producer
had given it up would count for the next transaction. In the newer flow the broker adds them, and
every end bumps the epoch: whatever comes late, comes too late.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.clients import offsets
from tests.simulation.clients.client import COORDINATOR_ERRORS, Client
from tests.simulation.clients.work import Identity
from tests.simulation.events import TopicPartition
from tests.simulation.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.schema import Message

ALL_IN_SYNC = -1
TIMEOUT_MS = (400, 3_000)
PATIENCE_MS = (0, 2_000, 9_000)
"""How long an answer is waited for, and for how long something is tried again before the
transaction is aborted; one of each, at random."""

INIT, ADD_PARTITIONS, ADD_OFFSETS = 4, 3, 3
PRODUCE = {1: 11, 2: 12}
COMMIT_OFFSETS = {1: 3, 2: 5}
END = {1: 4, 2: 5}

TRIED_AGAIN = COORDINATOR_ERRORS | {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
REPLACED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)

CodeOf = Callable[[Any], int]


class Fenced(Exception):  # noqa: N818 - the domain's word for it
    """Another has come, or the coordinator has ended the transaction: this instance is over."""


class Abortable(Exception):  # noqa: N818 - the domain's word for it
    """The transaction cannot be committed; abort it and begin another."""


class Producer:
    """One instance. It sends one thing at a time, and tries again what may have been lost."""

    def __init__(
        self, client: Client, transactional_id: str, *, flow: int, timeout_ms: int
    ) -> None:
        self.transactional_id = transactional_id
        self._client = client
        self._flow = flow
        self._timeout_ms = timeout_ms
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[object] = set()
        """What the coordinator may know to be part of the transaction."""
        self._is_in_doubt = False
        """Whether records may be in the log that were not acknowledged."""

    @property
    def who(self) -> tuple[str, int, int]:
        return self.transactional_id, self._producer_id, self._epoch

    async def init(self, *, goes_on: bool = False) -> None:
        """Get an identity; with `goes_on` the next epoch of the one it has (KIP-360)."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        if goes_on:
            request.producer_id, request.producer_epoch = self._producer_id, self._epoch
        answer, code = await self._insist(request, INIT, _code, gives_up=False)
        self._require(code)
        self._become(answer.producer_id, answer.producer_epoch)

    async def produce(self, partition: TopicPartition, values: list[str]) -> None:
        """Write one batch."""
        if self._flow == 1 and partition not in self._added:
            await self._add_partition(partition)
            await self._dawdle()
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
        self._is_in_doubt = True
        _, code = await self._insist(request, PRODUCE[self._flow], _produce_code)
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)
        self._is_in_doubt = False
        self._sequences[partition] = sequence + len(values)

    async def send_offsets(self, identity: Identity, positions: dict[TopicPartition, int]) -> None:
        """Have offsets committed with the transaction."""
        if self._flow == 1 and identity.group_id not in self._added:
            self._added.add(identity.group_id)
            transactional_id, producer_id, epoch = self.who
            request: Message = AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=identity.group_id,
            )
            _, code = await self._insist(request, ADD_OFFSETS, _code)
            self._require(code)
            await self._dawdle()
        self._added.add(identity.group_id)
        request = offsets.txn_commit_request(identity, positions, *self.who)
        _, code = await self._insist(request, COMMIT_OFFSETS[self._flow], _offsets_code)
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)

    async def end(self, *, committed: bool) -> None:
        """Commit or abort; there is no giving up on it."""
        if not self._added:
            return
        transactional_id, producer_id, epoch = self.who
        request = EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer_id,
            producer_epoch=epoch,
            committed=committed,
        )
        answer, code = await self._insist(request, END[self._flow], _code, gives_up=False)
        never_began = code == ErrorCode.INVALID_TXN_STATE and not committed and self._flow == 1
        if not never_began:
            self._require(code)
        self._added.clear()
        if self._flow == 2:
            self._become(answer.producer_id, answer.producer_epoch)
        elif self._is_in_doubt:
            # Only a new epoch keeps out what may still be on its way.
            await self.init(goes_on=True)

    async def _add_partition(self, partition: TopicPartition) -> None:
        self._added.add(partition)
        topic, index = partition
        transactional_id, producer_id, epoch = self.who
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=transactional_id,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[index])],
        )
        _, code = await self._insist(request, ADD_PARTITIONS, _added_code)
        self._require(code)

    async def _dawdle(self) -> None:
        """What was added need not be written to at once."""
        if self._client.chance(0.3):
            await self._client.sleep(self._client.between(10, 500))

    async def _insist(
        self, request: Message, version: int, code_of: CodeOf, *, gives_up: bool = True
    ) -> tuple[Any, int]:
        """Ask until there is an answer that counts."""
        client = self._client
        until_ms = client.now_ms + client.world.random.choice(PATIENCE_MS)
        while True:
            try:
                timeout_ms = client.world.random.choice(TIMEOUT_MS)
                answer = await client.ask(
                    request, version, timeout_ms=timeout_ms, haunts=self._flow == 2
                )
            except Unreachable:
                pass
            else:
                code = code_of(answer)
                if code not in TRIED_AGAIN:
                    return answer, code
            if gives_up and client.now_ms > until_ms:
                raise Abortable("it takes too long")
            await client.back_off()

    def _require(self, code: int) -> None:
        """What the coordinator of transactions refuses is refused for good."""
        if code in REPLACED:
            raise Fenced(ErrorCode(code).name)
        if code != ErrorCode.NONE:
            raise Abortable(ErrorCode(code).name)

    def _become(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self._producer_id, self._epoch):
            self._producer_id, self._epoch = producer_id, epoch
            self._sequences.clear()
        self._added.clear()
        self._is_in_doubt = False


def _code(answer: Any) -> int:
    return answer.error_code


def _produce_code(answer: Any) -> int:
    return answer.responses[0].partition_responses[0].error_code


def _added_code(answer: Any) -> int:
    return answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code


def _offsets_code(answer: Any) -> int:
    return next(
        (
            partition.error_code
            for topic in answer.topics
            for partition in topic.partitions
            if partition.error_code != ErrorCode.NONE
        ),
        ErrorCode.NONE,
    )
