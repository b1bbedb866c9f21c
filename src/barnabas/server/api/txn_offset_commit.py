"""TxnOffsetCommit (key 28): remember how far a group has read, if the transaction commits.

v2 leader epochs; v3 member id and generation (KIP-447); v4 TRANSACTION_ABORTABLE; v5 the group's
offsets become part of the transaction by being committed (KIP-890); v6 topics by id.
"""

from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.log.errors import LogDirFailure
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.server.group_requests import client_of
from barnabas.server.request_context import RequestContext
from barnabas.server.transactions.produce_verification import MAX_WAIT_SETTING, wait_before_retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.wire.records.batch import NO_SEQUENCE

FIRST_VERSION_WITH_ABORTABLE_ERRORS = 4
FIRST_VERSION_THAT_ADDS = 5


async def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets are committed for a named group.")
    index = context.broker.groups.runtime.partition_of(request.group_id)
    until_ms = context.now_ms + context.broker.resolver.broker(MAX_WAIT_SETTING)
    while await _is_too_early(request, index, context, until_ms):
        await wait_before_retry(context)
    return await context.broker.groups.txn_commit(request, client_of(context))


async def _is_too_early(
    request: TxnOffsetCommitRequest, index: int, context: RequestContext, until_ms: int
) -> bool:
    """Make the group's offsets part of the transaction; whether the one before has not ended
    everywhere, and may be waited for. KafkaError if they cannot be part of it."""
    producers = _producers(index, context)
    try:
        if producers is None:
            await _verify(request, index, context)
        else:
            await _begin(producers, request, index, context)
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or not _adds(context):
            raise
        if context.broker.clock() >= until_ms:
            raise
        return True
    return False


def _producers(index: int, context: RequestContext) -> ProducerStateManager | None:
    """Of the partition that keeps the group, if it is here."""
    try:
        return context.broker.partitions.get_by_name(GROUPS_TOPIC, index).log.producers
    except (KafkaError, LogDirFailure):
        return None


async def _begin(
    producers: ProducerStateManager,
    request: TxnOffsetCommitRequest,
    index: int,
    context: RequestContext,
) -> None:
    """KafkaError unless the transaction has committed offsets there before, or may do so now: one
    that ended while its coordinator was asked would never end again."""
    producer_id, epoch = request.producer_id, request.producer_epoch
    verification = producers.start_verification(
        producer_id, epoch, NO_SEQUENCE, from_zero=False, now_ms=context.now_ms
    )
    if verification is not None:
        await _verify(request, index, context)
        producers.check_verified(producer_id, epoch, verification)


async def _verify(request: TxnOffsetCommitRequest, index: int, context: RequestContext) -> None:
    """KafkaError unless the transaction's coordinator knows of the group's offsets (KIP-890)."""
    place = GROUPS_TOPIC, index
    verified = await context.broker.partition_verifier.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        add=_adds(context),
    )
    code = _told_at(verified[place], context.api_version)
    if code is not ErrorCode.NONE:
        raise KafkaError(
            code,
            f"The offsets of {request.group_id} are not part of the transaction of "
            f"{request.transactional_id}.",
        )


def _told_at(code: ErrorCode, version: int) -> ErrorCode:
    """What the coordinator of the transaction says, as clients of a group understand it."""
    match code:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.NOT_COORDINATOR:  # of the transaction; the client asked for the group's
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case ErrorCode.NETWORK_EXCEPTION:  # to be tried again, without looking for another
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case ErrorCode.TRANSACTION_ABORTABLE if version < FIRST_VERSION_WITH_ABORTABLE_ERRORS:
            return ErrorCode.INVALID_TXN_STATE
    return code


def _adds(context: RequestContext) -> bool:
    return context.api_version >= FIRST_VERSION_THAT_ADDS
