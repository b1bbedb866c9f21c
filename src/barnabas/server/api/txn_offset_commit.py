"""TxnOffsetCommit (key 28): remember how far a group has read, if the transaction commits.

v2 leader epochs; v3 member id and generation (KIP-447); v4 TRANSACTION_ABORTABLE; v5 the group's
offsets become part of the transaction by being committed (KIP-890); v6 topics by id.
"""

from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.log.failures import LogDirFailure
from barnabas.log.producers import Producers
from barnabas.server.group_requests import client_of
from barnabas.server.request_context import Call
from barnabas.server.transactions.produce_verification import LONGEST_WAIT, pause
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from barnabas.wire.records.batch import NO_SEQUENCE

FIRST_VERSION_WITH_ABORTABLE_ERRORS = 4
FIRST_VERSION_THAT_ADDS = 5


async def handle(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "Offsets are committed for a named group.")
    index = call.broker.groups.runtime.partition_of(request.group_id)
    until_ms = call.now_ms + call.broker.resolver.broker(LONGEST_WAIT)
    while await _is_too_early(request, index, call, until_ms):
        await pause(call)
    return await call.broker.groups.txn_commit(request, client_of(call))


async def _is_too_early(
    request: TxnOffsetCommitRequest, index: int, call: Call, until_ms: int
) -> bool:
    """Make the group's offsets part of the transaction; whether the one before has not ended
    everywhere, and may be waited for. KafkaError if they cannot be part of it."""
    producers = _producers(index, call)
    try:
        if producers is None:
            await _verify(request, index, call)
        else:
            await _begin(producers, request, index, call)
    except KafkaError as error:
        if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS or not _adds(call):
            raise
        if call.broker.clock() >= until_ms:
            raise
        return True
    return False


def _producers(index: int, call: Call) -> Producers | None:
    """Of the partition that keeps the group, if it is here."""
    try:
        return call.broker.partitions.by_name(GROUPS_TOPIC, index).log.producers
    except (KafkaError, LogDirFailure):
        return None


async def _begin(
    producers: Producers, request: TxnOffsetCommitRequest, index: int, call: Call
) -> None:
    """KafkaError unless the transaction has committed offsets there before, or may do so now: one
    that ended while its coordinator was asked would never end again."""
    producer_id, epoch = request.producer_id, request.producer_epoch
    verification = producers.expect(
        producer_id, epoch, NO_SEQUENCE, from_zero=False, now_ms=call.now_ms
    )
    if verification is not None:
        await _verify(request, index, call)
        producers.check_verified(producer_id, epoch, verification)


async def _verify(request: TxnOffsetCommitRequest, index: int, call: Call) -> None:
    """KafkaError unless the transaction's coordinator knows of the group's offsets (KIP-890)."""
    place = GROUPS_TOPIC, index
    verified = await call.broker.verifications.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        add=_adds(call),
    )
    code = _told_at(verified[place], call.api_version)
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


def _adds(call: Call) -> bool:
    return call.api_version >= FIRST_VERSION_THAT_ADDS
