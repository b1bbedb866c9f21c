"""TxnOffsetCommit (key 28): remember how far a group has read, if the transaction commits.

v2 leader epochs; v3 member id and generation (KIP-447); v4 TRANSACTION_ABORTABLE; v5 the group's
offsets become part of the transaction by being committed (KIP-890); v6 topics by id.
"""

from barnabas.coordinator.topics import GROUPS_TOPIC
from barnabas.log.failures import LogDirFailure
from barnabas.log.producers import Producers
from barnabas.server.call import Call
from barnabas.server.group_clients import client_of
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
    producers = _producers(index, call)
    if producers is None:
        await _verify(request, index, call)
    else:
        await _begin(producers, request, index, call)
    return await call.broker.groups.txn_commit(request, client_of(call))


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
    verified = await call.broker.transactions.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        add=call.api_version >= FIRST_VERSION_THAT_ADDS,
    )
    code = verified[place]
    if code is ErrorCode.NONE:
        return
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.NOT_COORDINATOR:  # of the transaction; the client asked for the group's
        code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    elif (
        code is ErrorCode.TRANSACTION_ABORTABLE
        and call.api_version < FIRST_VERSION_WITH_ABORTABLE_ERRORS
    ):
        code = ErrorCode.INVALID_TXN_STATE
    raise KafkaError(
        code,
        f"The offsets of {request.group_id} are not part of the transaction of "
        f"{request.transactional_id}.",
    )
