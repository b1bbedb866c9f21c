"""Every setting: its name, type, default, check, and whether it can change at run time.

    settings = BrokerSettings.from_properties(parse_properties(text))
    settings["num.partitions"]
    resolver = ConfigResolver(settings, image.configs)
    resolver.topic("orders")["retention.ms"]

The declarations are in `broker/`, `topic.py`, `group.py`, `client_metrics.py` and `client/`. Names
that need the broker's declarations are imported on first use, because clients do not need them.
"""

from typing import TYPE_CHECKING

from barnabas.config.addresses import Endpoint, Listener, SecurityProtocol, Voter
from barnabas.config.errors import ConfigError, InvalidConfig, InvalidConfigRequest
from barnabas.config.setting import Secret, Setting, SettingType
from barnabas.lazy import lazy_getattr

if TYPE_CHECKING:
    from barnabas.config.changes import (
        ConfigOperation,
        ConfigResourceType,
        apply_operation,
        find_setting,
    )
    from barnabas.config.properties import parse_properties as parse_properties
    from barnabas.config.resolver import ConfigResolver, TopicConfig
    from barnabas.config.settings import BrokerSettings
    from barnabas.config.validation import (
        validate_broker,
        validate_client_metrics,
        validate_group,
        validate_topic,
    )
else:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "barnabas.config.changes": (
                "ConfigOperation",
                "ConfigResourceType",
                "apply_operation",
                "find_setting",
            ),
            "barnabas.config.resolver": ("ConfigResolver", "TopicConfig"),
            "barnabas.config.properties": ("parse_properties",),
            "barnabas.config.settings": ("BrokerSettings",),
            "barnabas.config.validation": (
                "validate_broker",
                "validate_client_metrics",
                "validate_group",
                "validate_topic",
            ),
        },
    )

__all__ = [
    "BrokerSettings",
    "ConfigError",
    "ConfigOperation",
    "ConfigResolver",
    "ConfigResourceType",
    "Endpoint",
    "InvalidConfig",
    "InvalidConfigRequest",
    "Listener",
    "Secret",
    "SecurityProtocol",
    "Setting",
    "SettingType",
    "TopicConfig",
    "Voter",
    "apply_operation",
    "find_setting",
    "parse_properties",
    "validate_broker",
    "validate_client_metrics",
    "validate_group",
    "validate_topic",
]
