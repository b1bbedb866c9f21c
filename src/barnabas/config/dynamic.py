"""Settings in force: a topic's own, then the broker's, the cluster's, the file's, the default.

The Resolver looks at the metadata image's configurations as they are now (`configs` may be set
to another image's). Typed values are kept until `changed` says which resources have new ones, so
that a lookup is one dictionary access.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from barnabas.config import broker, group, topic
from barnabas.config.changes import ResourceType
from barnabas.config.errors import InvalidConfig
from barnabas.config.setting import STATIC, Setting, inherited
from barnabas.config.settings import BrokerSettings
from barnabas.config.validation import validate_broker, validate_group, validate_topic

log = logging.getLogger(__name__)

Resource: TypeAlias = tuple[int, str]
# All typed settings of one topic or group. Topics without settings of their own share one.
TopicConfig: TypeAlias = Mapping[str, Any]
GroupConfig: TypeAlias = Mapping[str, Any]

_NOTHING: Mapping[str, str] = {}


class Resolver:
    """The effective value of every setting on this node."""

    __slots__ = (
        "_broker",
        "_group_defaults",
        "_groups",
        "_topic_defaults",
        "_topics",
        "configs",
        "static",
    )

    def __init__(
        self, static: BrokerSettings, configs: Mapping[Resource, Mapping[str, str]]
    ) -> None:
        self.static = static
        self.configs = configs
        # Only those with settings of their own, so that no name a client makes up stays here.
        self._topics: dict[str, TopicConfig] = {}
        self._groups: dict[str, GroupConfig] = {}
        self._read_broker()

    def broker(self, name: str) -> Any:
        """The value of a broker setting in force on this node."""
        if name in self._broker:
            return self._broker[name]
        return broker.DYNAMIC_ONLY[name].default

    def at_listener(self, listener: str, name: str) -> Any:
        """The value of a broker setting in force for one listener."""
        own_name = f"listener.name.{listener.lower()}.{name}"
        return self._broker[own_name if own_name in self._broker else name]

    @property
    def broker_config(self) -> Mapping[str, Any]:
        """Every broker setting in force on this node."""
        return MappingProxyType(self._broker)

    @property
    def topic_defaults(self) -> TopicConfig:
        """What a topic without settings of its own has."""
        return self._topic_defaults

    def topic(self, topic_name: str) -> TopicConfig:
        """All typed settings of a topic: `resolver.topic("orders")["retention.ms"]`."""
        config = self._topics.get(topic_name)
        if config is not None:
            return config
        own = self.overrides(ResourceType.TOPIC, topic_name)
        if not own:
            return self._topic_defaults
        config = MappingProxyType({**self._topic_defaults, **_parse_known(own, topic.SETTINGS)})
        self._topics[topic_name] = config
        return config

    def group(self, group_name: str) -> GroupConfig:
        """All typed settings of a group."""
        config = self._groups.get(group_name)
        if config is not None:
            return config
        own = self.overrides(ResourceType.GROUP, group_name)
        if not own:
            return self._group_defaults
        config = MappingProxyType({**self._group_defaults, **_parse_known(own, group.SETTINGS)})
        self._groups[group_name] = config
        return config

    def overrides(self, resource_type: int, name: str) -> Mapping[str, str]:
        """A resource's own dynamic settings as text."""
        return self.configs.get((resource_type, name), _NOTHING)

    def changed(self, resources: Iterable[Resource]) -> None:
        """These resources have new settings (or none any more): forget what was resolved."""
        broker_names = ("", str(self.static.node_id))
        for resource_type, name in resources:
            if resource_type == ResourceType.TOPIC:
                self._topics.pop(name, None)
            elif resource_type == ResourceType.GROUP:
                self._groups.pop(name, None)
            elif resource_type == ResourceType.BROKER and name in broker_names:
                self._topics.clear()
                self._groups.clear()
                self._read_broker()

    def validate_topic(self, configs: Mapping[str, str | None]) -> None:
        """InvalidConfig unless a topic may have these settings here."""
        tiered_storage = self.broker("remote.log.storage.system.enable")
        validate_topic(configs, self._topic_defaults, tiered_storage=tiered_storage)

    def validate_broker(self, configs: Mapping[str, str | None], *, broker_id: int | None) -> None:
        """InvalidConfig unless this broker (or with None, every broker) may have these settings."""
        beneath = _NOTHING if broker_id is None else self.overrides(ResourceType.BROKER, "")
        validate_broker(configs, broker_id=broker_id, settings=self.static, beneath=beneath)

    def validate_group(self, configs: Mapping[str, str | None]) -> None:
        """InvalidConfig unless a group may have these settings here."""
        validate_group(configs, self.static)

    def _read_broker(self) -> None:
        cluster = self.overrides(ResourceType.BROKER, "")
        own = self.overrides(ResourceType.BROKER, str(self.static.node_id))
        self._broker: dict[str, Any] = {**self.static, **_parse_dynamic({**cluster, **own})}
        self._topic_defaults: TopicConfig = MappingProxyType(
            {name: inherited(setting, self._broker) for name, setting in topic.SETTINGS.items()}
        )
        self._group_defaults: GroupConfig = MappingProxyType(
            {name: inherited(setting, self._broker) for name, setting in group.SETTINGS.items()}
        )


def _parse_dynamic(texts: Mapping[str, str]) -> dict[str, Any]:
    dynamic = {
        name: setting
        for name in texts
        if (setting := broker.find(name)) is not None and setting.dynamic != STATIC
    }
    return _parse_known(texts, dynamic)


def _parse_known(texts: Mapping[str, str], settings: Mapping[str, Setting]) -> dict[str, Any]:
    """Typed values. What is unknown or wrong got past an older check: it is as if it were unset."""
    values = {}
    for name, text in texts.items():
        if name not in settings:
            continue
        try:
            values[name] = settings[name].parse(text)
        except InvalidConfig as problem:
            log.warning("Ignoring a dynamic setting: %s", problem)
    return values
