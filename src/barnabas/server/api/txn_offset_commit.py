"""TxnOffsetCommit (key 28): remember how far a group has read, if the transaction commits.

v2 leader epochs; v3 member id and generation (KIP-447); v4 TRANSACTION_ABORTABLE; v5 the group's
offsets become part of the transaction by being committed (KIP-890); v6 topics by id.
"""

from barnabas.coordinator.groups.state import GROUPS_TOPIC
from barnabas.server.call import Call
from barnabas.server.group_clients import client_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

FIRST_VERSION_THAT_ADDS = 5


async def handle(request: TxnOffsetCommitRequest, call: Call) -> TxnOffsetCommitResponse:
    broker = call.broker
    place = GROUPS_TOPIC, broker.groups.runtime.partition_of(request.group_id)
    verified = await broker.transactions.verify_or_add(
        request.transactional_id,
        request.producer_id,
        request.producer_epoch,
        [place],
        add=call.api_version >= FIRST_VERSION_THAT_ADDS,
    )
    if verified[place] != ErrorCode.NONE:
        raise KafkaError(
            verified[place],
            f"The offsets of {request.group_id} are not part of the transaction of "
            f"{request.transactional_id}.",
        )
    return await broker.groups.txn_commit(request, client_of(call))
