"""Verifies the transactional batches of a Produce request with their coordinator (KIP-890).

The first batch that a transaction writes to a partition may be appended only if the transaction
contains the partition. Up to v11 of Produce the client has added it at the coordinator, and this
broker verifies that; from v12 on this broker add it on the client's behalf.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from barnabas.log import VerificationGuard
from barnabas.replication import Partition
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import PartitionProduceData, ProduceRequest
from barnabas.wire.records.batch import BatchHeader, CorruptBatch, read_header

FIRST_VERSION_WITH_ABORTABLE_ERRORS = 11
FIRST_VERSION_THAT_ADDS = 12
FIRST_VERSION_WITH_TOPIC_IDS = 13

MAX_WAIT_SETTING = "add.partitions.to.txn.retry.backoff.max.ms"
"""The setting that limits the wait for the end of the previous transaction."""

VerificationOutcome: TypeAlias = "VerificationGuard | NotVerified"
Verified: TypeAlias = Mapping[Partition, VerificationOutcome]
"""The outcomes by partition, without those whose transaction is open already."""

Batches: TypeAlias = dict[Partition, BatchHeader]

_RETRIABLE_AT_COORDINATOR = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)
"""Producers do not expect these errors from a partition's leader. They do retry after
NOT_ENOUGH_REPLICAS, without requesting metadata first."""


class NotVerified(KafkaError):  # noqa: N818 - the domain's word for it
    """The coordinator does not confirm the batch, which is not appended."""


async def verify_batches(request: ProduceRequest, context: RequestContext) -> Verified:
    """Verifies all partitions in which the request would start a transaction.

    If the coordinator does not respond at once, the records are copied from the request's frame.
    Raises KafkaError if no part of the request can be appended.
    """
    batches: Batches = dict(_transactional_batches(request, context))
    producers = {(batch.producer_id, batch.producer_epoch) for batch in batches.values()}
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            f"The request of {request.transactional_id} has batches of more than one producer.",
        )
    setting = context.broker.resolver.broker
    add = context.api_version >= FIRST_VERSION_THAT_ADDS
    if not batches or not (add or setting("transaction.partition.verification.enable")):
        return {}
    clock = context.broker.clock
    until_ms = clock() + setting(MAX_WAIT_SETTING)
    while True:
        verified = await _verify_once(request, context, batches, add)
        if not add or not _has_concurrent_transaction(verified) or clock() >= until_ms:
            return verified
        _copy_records(request)
        await wait_before_retry(context)


async def _verify_once(
    request: ProduceRequest, context: RequestContext, batches: Batches, add: bool
) -> Verified:
    verified: dict[Partition, VerificationOutcome] = {}
    unverified: list[Partition] = []
    for partition, batch in batches.items():
        try:
            verification = partition.start_verification(batch, from_zero=add, now_ms=context.now_ms)
        except KafkaError as error:
            verified[partition] = NotVerified(error.code, error.message)
            continue
        if verification is not None:
            verified[partition] = verification
            unverified.append(partition)
    if not unverified:
        return verified
    transactional_id = request.transactional_id
    assert transactional_id is not None
    producer = next(iter(batches.values()))
    response = context.broker.partition_verifier.verify_or_add(
        transactional_id,
        producer.producer_id,
        producer.producer_epoch,
        [(partition.topic, partition.index) for partition in unverified],
        add=add,
    )
    if not response.is_done:
        _copy_records(request)
    codes = await response
    for partition in unverified:
        code = codes[partition.topic, partition.index]
        if code != ErrorCode.NONE:
            verified[partition] = _not_verified(
                code, partition, transactional_id, context.api_version
            )
    return verified


def _transactional_batches(
    request: ProduceRequest, context: RequestContext
) -> Iterator[tuple[Partition, BatchHeader]]:
    """Returns the batches for partitions led here; the append of others reports the error."""
    partitions = context.broker.partitions
    by_id = context.api_version >= FIRST_VERSION_WITH_TOPIC_IDS
    for topic in request.topic_data:
        for requested in topic.partition_data:
            header = _header(requested)
            if header is None or not header.is_transactional or header.producer_id < 0:
                continue
            try:
                if by_id:
                    partition = partitions.get(topic.topic_id, requested.index)
                else:
                    partition = partitions.get_by_name(topic.name, requested.index)
            except Exception:
                continue
            if partition.is_leader:
                yield partition, header


def _header(requested: PartitionProduceData) -> BatchHeader | None:
    """Returns the header of a batch, or None if it is not one."""
    records = requested.records
    if not isinstance(records, memoryview):
        return None
    try:
        return read_header(records)
    except CorruptBatch:
        return None


def _copy_records(request: ProduceRequest) -> None:
    """Copies the records before a wait, in which the frame's memory is reused."""
    for topic in request.topic_data:
        for requested in topic.partition_data:
            if isinstance(requested.records, memoryview):
                requested.records = memoryview(bytearray(requested.records))


def _has_concurrent_transaction(verified: Verified) -> bool:
    """Returns whether the previous transaction has not ended in all partitions.

    It will end soon: to wait here is faster than to have the records sent again.
    """
    return any(
        isinstance(outcome, NotVerified) and outcome.code == ErrorCode.CONCURRENT_TRANSACTIONS
        for outcome in verified.values()
    )


def _not_verified(
    code: ErrorCode, partition: Partition, transactional_id: str, version: int
) -> NotVerified:
    """Converts an error of the coordinator to one that producers of this version expect."""
    reason = (
        f"{partition.topic}-{partition.index} is not part of the transaction of "
        f"{transactional_id}: {code.name}."
    )
    unavailable = NotVerified(
        ErrorCode.NOT_ENOUGH_REPLICAS,
        "Unable to verify the partition has been added to the transaction. "
        f"Underlying error: {code.name}",
    )
    match code:
        case ErrorCode.PRODUCER_FENCED:
            return NotVerified(ErrorCode.INVALID_PRODUCER_EPOCH, reason)
        case ErrorCode.TRANSACTION_ABORTABLE if version < FIRST_VERSION_WITH_ABORTABLE_ERRORS:
            return NotVerified(
                ErrorCode.INVALID_TXN_STATE, "Partition was not added to the transaction"
            )
        case ErrorCode.CONCURRENT_TRANSACTIONS if version < FIRST_VERSION_THAT_ADDS:
            return unavailable
        case _ if code in _RETRIABLE_AT_COORDINATOR:
            return unavailable
    return NotVerified(code, reason)


async def wait_before_retry(context: RequestContext) -> None:
    """Waits for the retry backoff."""
    elapsed: asyncio.Future[None] = asyncio.Future()
    delay_ms: int = context.broker.resolver.broker("add.partitions.to.txn.retry.backoff.ms")
    context.broker.timer.call_after(delay_ms, lambda: elapsed.set_result(None))
    await elapsed
