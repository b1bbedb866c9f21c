"""Changing settings at run time: what one operation of IncrementalAlterConfigs makes of a value."""

from __future__ import annotations

from enum import IntEnum

from barnabas.config import broker, group, topic
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.setting import LOW, STRING, Setting, Type, split_list, to_text


class ResourceType(IntEnum):
    """What settings can belong to; the numbers are the protocol's."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class Operation(IntEnum):
    """What IncrementalAlterConfigs does to one setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS = frozenset(Operation)


def find_setting(resource_type: int, name: str) -> Setting:
    """The declaration of a resource's setting; an unknown name is a string of any value."""
    found = None
    match resource_type:
        case ResourceType.TOPIC:
            found = topic.SETTINGS.get(name)
        case ResourceType.BROKER:
            found = broker.find(name)
        case ResourceType.GROUP:
            found = group.SETTINGS.get(name)
    return found or Setting(name, STRING, None, LOW)


def apply_operation(
    setting: Setting, current: str | None, operation: int, value: str | None
) -> str | None:
    """The resource's own text of `setting` after the operation; None is unset."""
    if operation not in _OPERATIONS:
        raise InvalidConfigRequest(f"Unknown operation {operation} on {setting.name}")
    if operation == Operation.DELETE:
        return None
    if value is None:
        raise InvalidConfigRequest(f"Null value not supported for : {setting.name}")
    if operation == Operation.SET:
        return value
    if setting.type is not Type.LIST:
        raise InvalidConfig(
            f"Can't {Operation(operation).name} to key {setting.name} because its type is not LIST."
        )
    # An unset list grows from the setting's default, not from what the broker's file says.
    elements = split_list(current if current is not None else to_text(setting.default) or "")
    operands = split_list(value)
    if operation == Operation.APPEND:
        return ",".join(dict.fromkeys(elements + operands))
    return ",".join(element for element in elements if element not in operands)
