"""Checks of config resources: the settings of a broker are read and changed at that broker."""

import re

from barnabas.config import ConfigResourceType
from barnabas.wire.errors import ErrorCode, KafkaError

_INTEGER = re.compile(r"[+-]?[0-9]+")


def require_this_broker(name: str, node_id: int, or_else: str = "") -> None:
    """Raises INVALID_REQUEST unless `name` is the id of this broker."""
    if not _INTEGER.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
        )
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id}{or_else} but received {name}",
        )


def alter_error(resource_type: int, name: str, node_id: int) -> KafkaError | None:
    """Returns why this broker does not forward a change to the controller, or None if it does.

    An empty name is the default of all brokers.
    """
    if resource_type != ConfigResourceType.BROKER or not name:
        return None
    try:
        require_this_broker(name, node_id, or_else=" or empty string,")
    except KafkaError as error:
        return error
    return None
