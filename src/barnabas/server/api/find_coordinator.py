"""FindCoordinator (key 10): the broker that coordinates a group or a transaction.

v1 key types, error messages; v3 flexible; v4 several keys at once; v5 TRANSACTION_ABORTABLE; v6
share groups.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

from barnabas.coordinator.runtime import CoordinatorRuntime
from barnabas.security.authorizer.model import (
    AclOperation,
    group_resource,
    transactional_id_resource,
)
from barnabas.server.authorization import denied
from barnabas.server.cluster_view import leader_of
from barnabas.server.nodes import BrokerNode
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)

FIRST_VERSION_WITH_KEYS = 4
NO_NODE = -1


class KeyType(IntEnum):
    """The kinds of coordinators."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


async def handle(
    request: FindCoordinatorRequest, context: RequestContext
) -> FindCoordinatorResponse:
    has_keys = context.api_version >= FIRST_VERSION_WITH_KEYS
    keys = request.coordinator_keys if has_keys else [request.key]
    coordinators = await _find_all(keys, request.key_type, context)
    if has_keys:
        return FindCoordinatorResponse(coordinators=coordinators)
    (coordinator,) = coordinators
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


async def _find_all(
    keys: Sequence[str], key_type: int, context: RequestContext
) -> list[Coordinator]:
    rejected = [_access_error(key_type, key, context) for key in keys]
    unavailable: KafkaError | None = None
    try:
        runtime = _runtime_of(key_type, context.broker)
        if not all(rejected):
            await _require_topic(runtime.topic, context.broker)
    except KafkaError as error:
        unavailable = error
    return [
        _error(key, failure.code, failure.message)
        if (failure := access_error or unavailable) is not None
        else _find(key, runtime, context)
        for key, access_error in zip(keys, rejected, strict=True)
    ]


def _access_error(key_type: int, key: str, context: RequestContext) -> KafkaError | None:
    """Returns the error of a group or transactional id that the client may not describe."""
    match key_type:
        case KeyType.GROUP:
            resource = group_resource(key)
        case KeyType.TRANSACTION:
            resource = transactional_id_resource(key)
        case _:
            return None
    return None if context.is_allowed(AclOperation.DESCRIBE, resource) else denied(resource.type)


def _find(key: str, runtime: CoordinatorRuntime[Any], context: RequestContext) -> Coordinator:
    topic, index = runtime.topic, runtime.partition_of(key)
    leader = leader_of(topic, index, context)
    if leader is None or leader.endpoint is None:
        return _error(
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
    """Returns the runtime of the coordinators for a key type."""
    match key_type:
        case KeyType.GROUP:
            return broker.groups.runtime
        case KeyType.TRANSACTION:
            return broker.transactions.runtime
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Key type {key_type} has no coordinator here.")


async def _require_topic(topic: str, broker: BrokerNode) -> None:
    """Creates the topic if it does not exist.

    Raises COORDINATOR_NOT_AVAILABLE, after which clients retry, if that fails.
    """
    if broker.image.topics.by_name(topic) is not None:
        return
    for reason in (await broker.auto_topic_creator.create([topic], broker)).values():
        raise KafkaError(
            ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic} cannot be created: {reason}"
        )


def _error(key: str, code: ErrorCode, message: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=NO_NODE, error_code=code, error_message=message
    )
