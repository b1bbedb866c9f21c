"""FindCoordinator (key 10): which broker keeps a group's or a transaction's state.

v1 kinds of keys, error messages; v3 flexible; v4 several keys at once; v5 TRANSACTION_ABORTABLE for
clients that know it; v6 share groups.
"""

import logging
from enum import IntEnum
from typing import Any

from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.server.broker_node import BrokerNode
from barnabas.server.cluster_view import leader_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
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


async def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    several = context.api_version >= FIRST_VERSION_WITH_KEYS
    keys = request.coordinator_keys if several else [request.key]
    try:
        runtime = _runtime_of(request.key_type, context.broker)
        await _require_topic(runtime.topic, context.broker)
    except KafkaError as error:
        found = [_none(key, error.code, error.message) for key in keys]
    else:
        found = [_find(key, runtime, context) for key in keys]
    if several:
        return FindCoordinatorResponse(coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _find(key: str, runtime: CoordinatorRuntime[Any], context: RequestContext) -> Coordinator:
    topic, index = runtime.topic, runtime.partition_of(key)
    leader = leader_of(topic, index, context)
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
        error_message=None if context.api_version >= FIRST_VERSION_WITH_KEYS else "NONE",
    )


def _runtime_of(key_type: int, broker: BrokerNode) -> CoordinatorRuntime[Any]:
    """The coordinators whose topic keeps the state of such keys."""
    match key_type:
        case KeyType.GROUP:
            return broker.groups.runtime
        case KeyType.TRANSACTION:
            return broker.transactions.runtime
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Key type {key_type} has no coordinator here.")


async def _require_topic(topic: str, broker: BrokerNode) -> None:
    """The topic is made on first use. KafkaError, of the one kind that clients ask again after,
    if that cannot be done now."""
    if broker.image.topics.by_name(topic) is not None:
        return
    for reason in (await broker.auto_topic_creator.create([topic], broker)).values():
        log.warning("%s cannot be created: %s", topic, reason)
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} cannot be created: {reason}"
        )


def _none(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NOWHERE, host="", port=NOWHERE, error_code=code, error_message=message
    )
