"""Settings of a broker are asked for and changed at that broker, not at another."""

import re

from barnabas.config import ResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

_INTEGER = re.compile(r"[+-]?[0-9]+")


def require_this_broker(name: str, node_id: int, or_else: str = "") -> None:
    """INVALID_REQUEST unless the name is this broker's id."""
    if not _INTEGER.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id}{or_else} but received {name}",
        )


def refusal_to_alter(resource_type: int, name: str, node_id: int) -> KafkaError | None:
    """Why this broker does not pass a change on to the controller; no name is the cluster."""
    if resource_type != ResourceType.BROKER or not name:
        return None
    try:
        require_this_broker(name, node_id, or_else=" or empty string,")
    except KafkaError as error:
        return error
    return None
