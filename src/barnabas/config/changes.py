"""Changes of settings at run time: the operations of IncrementalAlterConfigs on one value."""

from __future__ import annotations

from enum import IntEnum

from barnabas.config import broker, group, topic
from barnabas.config.errors import InvalidConfig, InvalidConfigRequest
from barnabas.config.setting import LOW, STRING, Setting, SettingType, split_list, to_text


class ConfigResourceType(IntEnum):
    """The resources that have settings, with the numbers of the protocol."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs does to one setting, with the numbers of the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS = frozenset(ConfigOperation)


def find_setting(resource_type: int, name: str) -> Setting:
    """Returns the declaration of a setting; an unknown name is declared as a string."""
    setting = None
    match resource_type:
        case ConfigResourceType.TOPIC:
            setting = topic.SETTINGS.get(name)
        case ConfigResourceType.BROKER:
            setting = broker.find(name)
        case ConfigResourceType.GROUP:
            setting = group.SETTINGS.get(name)
    return setting or Setting(name, STRING, None, LOW)


def apply_operation(
    setting: Setting, current: str | None, operation: int, value: str | None
) -> str | None:
    """Returns the resource's own text of `setting` after the operation; None means unset."""
    if operation not in _OPERATIONS:
        raise InvalidConfigRequest(f"Unknown operation {operation} on {setting.name}")
    if operation == ConfigOperation.DELETE:
        return None
    if value is None:
        raise InvalidConfigRequest(f"Null value not supported for : {setting.name}")
    if operation == ConfigOperation.SET:
        return value
    if setting.type is not SettingType.LIST:
        name = ConfigOperation(operation).name
        raise InvalidConfig(f"Can't {name} to key {setting.name} because its type is not LIST.")
    # An unset list starts from the setting's default, not from the value in the broker's file.
    elements = split_list(current if current is not None else to_text(setting.default) or "")
    operands = split_list(value)
    if operation == ConfigOperation.APPEND:
        return ",".join(dict.fromkeys(elements + operands))
    return ",".join(element for element in elements if element not in operands)
