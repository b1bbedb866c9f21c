"""The result of a validation, and its JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from barnabas.connect.common_settings import OrderedSetting
from barnabas.connect.config_def import HIDDEN, ConfigType, ConfigValueInfo
from barnabas.connect.model import ConnectorKind


@dataclass(slots=True, frozen=True)
class ValidatedSetting:
    """A setting with its value. Without a definition, the connector does not have the setting."""

    definition: OrderedSetting | None
    value: ConfigValueInfo


@dataclass(slots=True)
class ValidatedConfig:
    """The result of a validation."""

    name: str
    """The connector class as it was given."""
    kind: ConnectorKind
    settings: list[ValidatedSetting] = field(default_factory=list)

    @property
    def errors(self) -> list[str]:
        return [error for setting in self.settings for error in setting.value.errors]

    @property
    def groups(self) -> list[str]:
        groups = (each.definition.setting.group for each in self.settings if each.definition)
        return list(dict.fromkeys(group for group in groups if group is not None))

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "error_count": len(self.errors),
            "groups": self.groups,
            "configs": [_setting_json(setting) for setting in self.settings],
        }


# JSON


def _setting_json(each: ValidatedSetting) -> dict[str, Any]:
    definition = each.definition
    type_ = None if definition is None else definition.setting.type
    value = each.value
    return {
        "definition": None if definition is None else definition_json(definition),
        "value": {
            "name": value.name,
            "value": shown_value(value.value, type_),
            "recommended_values": [
                shown_value(choice, None if type_ is ConfigType.LIST else type_)
                for choice in value.recommended_values
            ],
            "errors": value.errors,
            "visible": value.is_visible,
        },
    }


def definition_json(each: OrderedSetting) -> dict[str, Any]:
    setting = each.setting
    default = None if setting.is_required else shown_value(setting.default, setting.type)
    return {
        "name": setting.name,
        "type": setting.type,
        "required": setting.is_required,
        "default_value": default,
        "importance": setting.importance,
        "documentation": setting.doc,
        "group": setting.group,
        "order_in_group": each.order,
        "width": setting.width,
        "display_name": setting.name if setting.display_name is None else setting.display_name,
        "dependents": list(setting.dependents),
    }


def shown_value(value: Any, type_: ConfigType | None) -> str | None:
    """Returns the text of a parsed value; a password is hidden."""
    if value is None:
        return None
    if type_ is ConfigType.PASSWORD:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return ",".join(str(shown_value(each, None)) for each in value)
    if isinstance(value, type):
        return value.__qualname__
    return str(value)
