"""Every setting: name, type, default, check, and who may change it when.

    settings = BrokerSettings.from_properties(parse_properties(text))
    settings["num.partitions"]
    resolver = Resolver(settings, image.configs)
    resolver.topic("orders")["retention.ms"]

The declarations are in `broker/`, `topic.py`, `group.py`, `client_metrics.py` and `client/`. What
needs those of brokers is loaded when it is first used: clients need them not.
"""

from typing import TYPE_CHECKING

from barnabas.config.addresses import Endpoint, Listener, SecurityProtocol, Voter
from barnabas.config.errors import ConfigError, InvalidConfig, InvalidConfigRequest
from barnabas.config.setting import Secret, Setting, Type
from barnabas.lazy import loading

if TYPE_CHECKING:
    from barnabas.config.changes import Operation, ResourceType, apply_operation, find_setting
    from barnabas.config.dynamic import Resolver, TopicConfig
    from barnabas.config.properties import parse as parse_properties
    from barnabas.config.settings import BrokerSettings
    from barnabas.config.validation import (
        validate_broker,
        validate_client_metrics,
        validate_group,
        validate_topic,
    )
else:
    __getattr__ = loading(
        __name__,
        {
            "barnabas.config.changes": (
                "Operation",
                "ResourceType",
                "apply_operation",
                "find_setting",
            ),
            "barnabas.config.dynamic": ("Resolver", "TopicConfig"),
            "barnabas.config.properties": ("parse as parse_properties",),
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
    "Endpoint",
    "InvalidConfig",
    "InvalidConfigRequest",
    "Listener",
    "Operation",
    "Resolver",
    "ResourceType",
    "Secret",
    "SecurityProtocol",
    "Setting",
    "TopicConfig",
    "Type",
    "Voter",
    "apply_operation",
    "find_setting",
    "parse_properties",
    "validate_broker",
    "validate_client_metrics",
    "validate_group",
    "validate_topic",
]
