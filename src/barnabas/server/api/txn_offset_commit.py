"""TxnOffsetCommit (key 28): commit offsets of a group, if the transaction commits.

v2 leader epochs; v3 member id and generation (KIP-447); v4 TRANSACTION_ABORTABLE; v5 adds the
group's offsets to the transaction (KIP-890); v6 topics by id.
"""

from barnabas.coordinator.records import GROUPS_TOPIC
from barnabas.log.errors import LogDirFailure
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.security.authorizer.model import (
    AclOperation,
    group_resource,
    transactional_id_resource,
)
from barnabas.server.api.groups import client_of
from barnabas.server.errors import response_or_error
from barnabas.server.request_context import RequestContext
from barnabas.server.topic_authorization import split_by_permission, split_ids_by_permission
from barnabas.server.transactions.produce_verification import MAX_WAIT_SETTING, wait_before_retry
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.wire.records.batch import NO_SEQUENCE

FIRST_VERSION_WITH_ABORTABLE_ERRORS = 4
FIRST_VERSION_THAT_ADDS = 5
FIRST_VERSION_BY_ID = 6


async def handle(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    if context.broker.authorizer is None:
        return await _commit(request, context)
    context.require_allowed(AclOperation.WRITE, transactional_id_resource(request.transactional_id))
    context.require_allowed(AclOperation.READ, group_resource(request.group_id))
    by_id = context.api_version >= FIRST_VERSION_BY_ID
    split = split_ids_by_permission if by_id else split_by_permission
    request.topics, rejected = split(request.topics, AclOperation.READ, context)
    if not rejected:
        return await _commit(request, context)
    response = TxnOffsetCommitResponse()
    if request.topics:
        response = await response_or_error(_commit(request, context), request, context)
    response.topics += [
        TxnOffsetCommitResponseTopic(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                TxnOffsetCommitResponsePartition(
                    partition_index=partition.partition_index,
                    error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                )
                for partition in topic.partitions
            ],
        )
        for topic in rejected
    ]
    return response


async def _commit(
    request: TxnOffsetCommitRequest, context: RequestContext
) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id must not be empty.")
    index = context.broker.groups.runtime.partition_of(request.group_id)
    deadline_ms = context.now_ms + context.broker.resolver.broker(MAX_WAIT_SETTING)
    while await _must_wait(request, index, context, deadline_ms):
        await wait_before_retry(context)
    return await context.broker.groups.txn_commit(request, client_of(context))


async def _must_wait(
    request: TxnOffsetCommitRequest, index: int, context: RequestContext, deadline_ms: int
) -> bool:
    """Verifies that the transaction contains the group's offsets, or adds them.

    Returns whether the previous transaction has not ended in all partitions, so that the caller
    retries. Raises KafkaError if the offsets cannot be part of the transaction.
    """
    producers = _producer_states(index, context)
    try:
        if producers is None:
            await _verify(request, index, context)
        else:
            await _start(producers, request, index, context)
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or not _adds(context):
            raise
        if context.broker.clock() >= deadline_ms:
            raise
        return True
    return False


def _producer_states(index: int, context: RequestContext) -> ProducerStateManager | None:
    """Returns the producer states of the group's partition, or None if it is not on this broker."""
    try:
        return context.broker.partitions.get_by_name(GROUPS_TOPIC, index).log.producers
    except (KafkaError, LogDirFailure):
        return None


async def _start(
    producers: ProducerStateManager,
    request: TxnOffsetCommitRequest,
    index: int,
    context: RequestContext,
) -> None:
    """Raises KafkaError unless the transaction has committed offsets there before, or may now.

    A transaction that ended during the verification must not start again: it would never end.
    """
    producer_id, epoch = request.producer_id, request.producer_epoch
    verification = producers.start_verification(
        producer_id, epoch, NO_SEQUENCE, from_zero=False, now_ms=context.now_ms
    )
    if verification is not None:
        await _verify(request, index, context)
        producers.check_verified(producer_id, epoch, verification)


async def _verify(request: TxnOffsetCommitRequest, index: int, context: RequestContext) -> None:
    """Raises KafkaError unless the transaction contains the group's offsets (KIP-890)."""
    topic_partition = GROUPS_TOPIC, index
    verified = await context.broker.partition_verifier.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [topic_partition],
        add=_adds(context),
    )
    code = _client_error(verified[topic_partition], context.api_version)
    if code is not ErrorCode.NONE:
        raise KafkaError(
            code,
            f"The offsets of {request.group_id} are not part of the transaction of "
            f"{request.transactional_id}.",
        )


def _client_error(code: ErrorCode, version: int) -> ErrorCode:
    """Converts an error of the transaction coordinator to one that clients of a group expect."""
    match code:
        case ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        case ErrorCode.NOT_COORDINATOR:  # of the transaction; the client would look for the group's
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        case (
            ErrorCode.NETWORK_EXCEPTION
        ):  # the client retries without looking for another coordinator
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        case ErrorCode.TRANSACTION_ABORTABLE if version < FIRST_VERSION_WITH_ABORTABLE_ERRORS:
            return ErrorCode.INVALID_TXN_STATE
    return code


def _adds(context: RequestContext) -> bool:
    return context.api_version >= FIRST_VERSION_THAT_ADDS
