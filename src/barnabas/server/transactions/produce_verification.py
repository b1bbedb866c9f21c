"""Transactional batches of a Produce request, and the word of their coordinator (KIP-890).

The first batch that a transaction writes to a partition may be appended only if the transaction's
coordinator knows of the partition. Up to version 11 of Produce the client has told it, and this
broker makes sure of that; from version 12 on this broker tells it on the client's behalf.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from barnabas.log import Verification
from barnabas.replication import Partition
from barnabas.server.request_context import Call
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest
from barnabas.wire.records.batch import BatchHeader, CorruptBatch, read_header

FIRST_VERSION_WITH_ABORTABLE_ERRORS = 11
FIRST_VERSION_THAT_ADDS = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13

LONGEST_WAIT = "add.partitions.to.txn.retry.backoff.max.ms"
"""How long the end of the transaction before is waited for."""

Outcome: TypeAlias = "Verification | NotVerified"
Verified: TypeAlias = Mapping[Partition, Outcome]
"""What came of it by partition; those are left out whose transaction is open already."""

Batches: TypeAlias = dict[Partition, BatchHeader]

_TOLD_IN_DISGUISE = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Producers do not expect these from the leader of a partition. They do retry after
NOT_ENOUGH_REPLICAS, and without asking for new metadata first."""


class NotVerified(KafkaError):  # noqa: N818 - the domain's word for it
    """Nobody vouches for the batch, and it is not appended."""


async def verify(request: ProduceRequest, call: Call) -> Verified:
    """Ask for the coordinator's word on all that this request would begin.

    If that takes time, the records are copied out of the frame they came in. KafkaError if the
    request is not fit to be appended at all.
    """
    batches: Batches = dict(_transactional_batches(request, call))
    producers = {(batch.producer_id, batch.producer_epoch) for batch in batches.values()}
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"The request of {request.transactional_id} has batches of more than one producer.",
        )
    setting = call.broker.resolver.broker
    adds = call.api_version >= FIRST_VERSION_THAT_ADDS
    if not batches or not (adds or setting("transaction.partition.verification.enable")):
        return {}
    clock = call.broker.clock
    until_ms = clock() + setting(LONGEST_WAIT)
    while True:
        verified = await _ask(request, call, batches, adds)
        if not adds or not _is_too_early(verified) or clock() >= until_ms:
            return verified
        _keep_records(request)
        await pause(call)


async def _ask(request: ProduceRequest, call: Call, batches: Batches, adds: bool) -> Verified:
    verified: dict[Partition, Outcome] = {}
    unsure: list[Partition] = []
    for partition, batch in batches.items():
        try:
            verification = partition.verify(batch, from_zero=adds, now_ms=call.now_ms)
        except KafkaError as refused:
            verified[partition] = NotVerified(refused.code, refused.message)
            continue
        if verification is not None:
            verified[partition] = verification
            unsure.append(partition)
    if not unsure:
        return verified
    transactional_id = request.transactional_id
    assert transactional_id is not None
    producer = next(iter(batches.values()))
    answer = call.broker.verifications.verify_or_add(
        transactional_id,
        producer.producer_id,
        producer.producer_epoch,
        [(partition.topic, partition.index) for partition in unsure],
        add=adds,
    )
    if not answer.is_done:
        _keep_records(request)
    codes = await answer
    for partition in unsure:
        code = codes[partition.topic, partition.index]
        if code != ErrorCode.NONE:
            verified[partition] = _refusal(code, partition, transactional_id, call.api_version)
    return verified


def _transactional_batches(
    request: ProduceRequest, call: Call
) -> Iterator[tuple[Partition, BatchHeader]]:
    """Those for partitions that are led here; for the others, the append will say what is wrong."""
    partitions = call.broker.partitions
    by_id = call.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            header = _header(wanted)
            if header is None or not header.is_transactional or header.producer_id < 0:
                continue
            try:
                if by_id:
                    partition = partitions.get(topic.topic_id, wanted.index)
                else:
                    partition = partitions.by_name(topic.name, wanted.index)
            except Exception:
                continue
            if partition.is_leader:
                yield partition, header


def _header(wanted: PartitionProduceData) -> BatchHeader | None:
    """The header of what looks like a batch."""
    records = wanted.records
    if not isinstance(records, memoryview):
        return None
    try:
        return read_header(records)
    except CorruptBatch:
        return None


def _keep_records(request: ProduceRequest) -> None:
    """Before a wait: the memory of the frame is used for others meanwhile."""
    for topic in request.topic_data:
        for wanted in topic.partition_data:
            if isinstance(wanted.records, memoryview):
                wanted.records = memoryview(bytearray(wanted.records))


def _is_too_early(verified: Verified) -> bool:
    """Whether the transaction before has not ended everywhere. It will have, soon: to wait for it
    here is quicker than to have the records sent again."""
    return any(
        isinstance(outcome, NotVerified) and outcome.code == ErrorCode.CONCURRENT_TRANSACTIONS
        for outcome in verified.values()
    )


def _refusal(
    code: ErrorCode, partition: Partition, transactional_id: str, version: int
) -> NotVerified:
    """A coordinator's error as producers of this version understand it."""
    reason = (
        f"{partition.topic}-{partition.index} is not part of the transaction of "
        f"{transactional_id}: {code.name}."
    )
    match code:
        case ErrorCode.PRODUCER_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.TRANSACTION_ABORTABLE if version < FIRST_VERSION_WITH_ABORTABLE_ERRORS:
            code = ErrorCode.INVALID_TXN_STATE
        case ErrorCode.CONCURRENT_TRANSACTIONS if version < FIRST_VERSION_THAT_ADDS:
            code = ErrorCode.NOT_ENOUGH_REPLICAS
        case _ if code in _TOLD_IN_DISGUISE:
            code = ErrorCode.NOT_ENOUGH_REPLICAS
    return NotVerified(code, reason)


async def pause(call: Call) -> None:
    """Before the coordinator is asked again."""
    over: asyncio.Future[None] = asyncio.Future()
    delay_ms: int = call.broker.resolver.broker("add.partitions.to.txn.retry.backoff.ms")
    call.broker.timer.after(delay_ms, lambda: over.set_result(None))
    await over
