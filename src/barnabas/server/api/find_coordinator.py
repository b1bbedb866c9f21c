"""FindCoordinator (key 10): which broker keeps a group's or a transaction's state.

v1 kinds of keys, error messages; v3 flexible; v4 several keys at once; v5 TRANSACTION_ABORTABLE for
clients that know it; v6 share groups.
"""

import logging
from enum import IntEnum
from typing import Any

from barnabas.coordinator.runtime import Runtime
from barnabas.coordinator.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC
from barnabas.server.broker import Broker
from barnabas.server.call import Call
from barnabas.server.internal_topics import new_topic
from barnabas.server.leaders import leader_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_KEYS = 4
NOWHERE = -1

log = logging.getLogger(__name__)


class KeyType(IntEnum):
    """What the key is the name of."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


async def handle(request: FindCoordinatorRequest, call: Call) -> FindCoordinatorResponse:
    if call.api_version >= FIRST_VERSION_WITH_KEYS:
        return FindCoordinatorResponse(
            coordinators=[
                await _find(key, request.key_type, call) for key in request.coordinator_keys
            ]
        )
    found = await _find(request.key, request.key_type, call)
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key: str, key_type: int, call: Call) -> Coordinator:
    try:
        topic, index = await _place_of(key, key_type, call)
    except KafkaError as error:
        return _none(key, error.code, error.message)
    leader = leader_of(topic, index, call)
    if leader is None or leader.endpoint is None:
        return _none(
            key,
            ErrorCode.COORDINATOR_NOT_AVAILABLE,
            f"{topic}-{index} has no leader now: try again.",
        )
    return Coordinator(
        key=key,
        node_id=leader.leader_id,
        host=leader.endpoint.host,
        port=leader.endpoint.port,
        error_message=None if call.api_version >= FIRST_VERSION_WITH_KEYS else "NONE",
    )


async def _place_of(key: str, key_type: int, call: Call) -> tuple[str, int]:
    """The topic and partition that keep the state of `key`; the topic is made on first use."""
    broker = call.broker
    runtime: Runtime[Any]
    match key_type:
        case KeyType.GROUP:
            topic, runtime = GROUPS_TOPIC, broker.groups.runtime
        case KeyType.TRANSACTION:
            topic, runtime = TRANSACTIONS_TOPIC, broker.transactions.runtime
        case _:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Key type {key_type} has no coordinator here."
            )
    if broker.image.topics.by_name(topic) is None:
        await _create(topic, broker)
    return topic, runtime.partition_of(key)


async def _create(topic: str, broker: Broker) -> None:
    """KafkaError, of the one kind that clients ask again after, if that cannot be done now."""
    request = CreateTopicsRequest(topics=[new_topic(topic, broker.settings.__getitem__)])
    try:
        response = await broker.controller.handle(request)
    except KafkaError as error:
        reason = error.message
    else:
        created = response.topics[0]
        if created.error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            return
        reason = created.error_message
    log.warning("%s cannot be created: %s", topic, reason)
    raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} cannot be created: {reason}")


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NOWHERE, host="", port=NOWHERE, error_code=code, error_message=message
    )
