"""Producers of transactions, of which some are aborted (transaction version 2, KIP-890)."""

import asyncio
from typing import Any

from tests.simulation.cluster.clients.client import Client, error_name
from tests.simulation.cluster.clients.keyed_records import as_keyed
from tests.simulation.cluster.events import PartitionKey, TransactionEnded

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.transactions import EndTxnRequest
from barnabas.wire.records.build import build_batch
from barnabas.wire.records.record import Record
from barnabas.wire.schema import Message

ALL_IN_SYNC = -1
TRANSACTION_KEY = 1
TIMEOUT_MS = 900
TRANSACTION_TIMEOUT_MS = 10_000
ATTEMPTS = 8
"""How often a batch is sent before its transaction is aborted."""
ABORT_CHANCE = 0.4

RETRIABLE_ERRORS = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class _Abandoned(Exception):  # noqa: N818 - the domain's word for it
    """The producer needs a new epoch."""


class TransactionalProducer(Client):
    """One transaction after the other in one partition, until it must finish."""

    def __init__(self, world: Any, name: str, key: PartitionKey, keys: int) -> None:
        super().__init__(world, name)
        self.key = key
        self._keys = keys
        self.is_finishing = False
        self.is_done = False
        self._written = 0
        self._coordinator = -1
        self._producer_id, self._epoch, self._sequence = -1, -1, 0

    async def run(self) -> None:
        is_ready = False
        while not self.is_finishing:
            try:
                if not is_ready:
                    await self._init()
                is_ready = True
                await self._run_transaction()
            except _Abandoned as reason:
                self.world.events.note(self.name, f"begins anew: {reason}")
                is_ready = False
                await self.back_off()
            await asyncio.sleep(self.random.uniform(0, 0.15))
        self.is_done = True

    async def _init(self) -> None:
        """Gets a new epoch, which aborts a transaction that is still open."""
        request = InitProducerIdRequest(
            transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        self._become(await self._send_to_coordinator(request))

    async def _run_transaction(self) -> None:
        offsets: list[int] = []
        is_committed = self.random.random() > ABORT_CHANCE
        for _ in range(self.random.randint(1, 3)):
            acknowledged = await self._produce()
            is_committed = is_committed and acknowledged is not None
            offsets += acknowledged or ()
            await asyncio.sleep(self.random.uniform(0, 0.1))
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=is_committed,
        )
        self._become(await self._send_to_coordinator(request))
        self.world.events.record(
            TransactionEnded(self.name, self.key, tuple(offsets), is_committed)
        )

    async def _produce(self) -> range | None:
        """Produces a batch. Returns its offsets, or None if it may not be in the log."""
        records = [self._next_record() for _ in range(self.random.randint(1, 2))]
        for _ in range(ATTEMPTS):
            base_offset = await self._try(records)
            if base_offset is not None:
                self._sequence += len(records)
                return range(base_offset, base_offset + len(records))
            await self.back_off()
            await self.refresh_metadata()
        return None

    def _next_record(self) -> Record:
        self._written += 1
        value = f"{self.name}/{self._written}".encode()
        return as_keyed(Record(0, self.now_ms, None, value, []), self.random, self._keys)

    async def _try(self, records: list[Record]) -> int | None:
        led = await self.find_leader(self.key)
        batch = build_batch(
            records,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=self._sequence,
            transactional=True,
        )
        topic_id, index = self.key
        partition = PartitionProduceData(index=index, records=batch)
        request = ProduceRequest(
            transactional_id=self.name,
            acks=ALL_IN_SYNC,
            timeout_ms=TIMEOUT_MS,
            topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[partition])],
        )
        try:
            response = await self.send_request(led.leader, request, TIMEOUT_MS + 200)
        except OSError:
            return None
        result = response.responses[0].partition_responses[0]
        if result.error_code == ErrorCode.NONE:
            base_offset: int = result.base_offset
            return base_offset
        if result.error_code not in RETRIABLE_ERRORS:
            raise _Abandoned(error_name(result.error_code))
        return None

    async def _send_to_coordinator(self, request: Message) -> Any:
        """Sends it until there is a response without a retriable error."""
        while True:
            try:
                if self._coordinator < 0:
                    await self._find_coordinator()
                response = await self.send_request(self._coordinator, request, TIMEOUT_MS)
            except OSError:
                self._coordinator = -1
                await self.back_off()
                continue
            if response.error_code == ErrorCode.NONE:
                return response
            if response.error_code not in RETRIABLE_ERRORS:
                raise _Abandoned(f"{type(request).__name__} {error_name(response.error_code)}")
            self._coordinator = -1
            await self.back_off()

    async def _find_coordinator(self) -> None:
        request = FindCoordinatorRequest(key_type=TRANSACTION_KEY, coordinator_keys=[self.name])
        broker = self.random.choice(self.world.layout.brokers)
        response = await self.send_request(broker, request, TIMEOUT_MS)
        coordinator = response.coordinators[0]
        if coordinator.error_code:
            raise ConnectionError(error_name(coordinator.error_code))
        self._coordinator = coordinator.node_id

    def _become(self, response: Any) -> None:
        if (response.producer_id, response.producer_epoch) != (self._producer_id, self._epoch):
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self._sequence = 0
