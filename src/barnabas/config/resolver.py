"""Effective settings: the topic's or group's, then the broker's, the cluster-wide ones, the file's,
and the default.

The resolver reads the configurations of the current metadata image (`configs` can be replaced by
those of another image). It caches typed values until `invalidate`, so that a lookup is one
dictionary access.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from barnabas.config import broker, group, topic
from barnabas.config.changes import ConfigResourceType
from barnabas.config.errors import InvalidConfig
from barnabas.config.providers import has_reference, resolve_references, without_resolved
from barnabas.config.setting import READ_ONLY, Setting, inherited_value
from barnabas.config.settings import BrokerSettings
from barnabas.config.validation import validate_broker, validate_group, validate_topic

log = logging.getLogger(__name__)

Resource: TypeAlias = tuple[int, str]
# All typed settings of one topic or group. Topics without own settings share one mapping.
TopicConfig: TypeAlias = Mapping[str, Any]
GroupConfig: TypeAlias = Mapping[str, Any]

T = TypeVar("T", str, str | None)

_NO_CONFIGS: Mapping[str, str] = {}


class ConfigResolver:
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
        # Only topics and groups with own settings, so that unknown names use no memory.
        self._topics: dict[str, TopicConfig] = {}
        self._groups: dict[str, GroupConfig] = {}
        self._read_broker()

    def broker(self, name: str) -> Any:
        """Returns the effective value of a broker setting on this node."""
        if name in self._broker:
            return self._broker[name]
        return broker.DYNAMIC_ONLY[name].default

    def for_listener(self, listener: str, name: str, mechanism: str | None = None) -> Any:
        """Returns the effective value of a broker setting for one listener (and mechanism)."""
        prefix = f"listener.name.{listener.lower()}."
        if mechanism is not None:
            key = f"{prefix}{mechanism.lower()}.{name}"
            if key in self._broker:
                return self._broker[key]
        return self._broker[prefix + name if prefix + name in self._broker else name]

    @property
    def broker_config(self) -> Mapping[str, Any]:
        """The effective broker settings of this node."""
        return MappingProxyType(self._broker)

    @property
    def topic_defaults(self) -> TopicConfig:
        """The settings of a topic without own settings."""
        return self._topic_defaults

    def topic(self, topic_name: str) -> TopicConfig:
        """Returns all typed settings of a topic: `resolver.topic("orders")["retention.ms"]`."""
        config = self._topics.get(topic_name)
        if config is not None:
            return config
        own = self.overrides(ConfigResourceType.TOPIC, topic_name)
        if not own:
            return self._topic_defaults
        config = MappingProxyType({**self._topic_defaults, **_parse_valid(own, topic.SETTINGS)})
        self._topics[topic_name] = config
        return config

    def group(self, group_name: str) -> GroupConfig:
        """Returns all typed settings of a group."""
        config = self._groups.get(group_name)
        if config is not None:
            return config
        own = self.overrides(ConfigResourceType.GROUP, group_name)
        if not own:
            return self._group_defaults
        config = MappingProxyType({**self._group_defaults, **_parse_valid(own, group.SETTINGS)})
        self._groups[group_name] = config
        return config

    def overrides(self, resource_type: int, name: str) -> Mapping[str, str]:
        """Returns the own dynamic settings of a resource as text."""
        return self.configs.get((resource_type, name), _NO_CONFIGS)

    def invalidate(self, resources: Iterable[Resource]) -> None:
        """Drops the cached values of resources whose dynamic settings have changed."""
        broker_names = ("", str(self.static.node_id))
        for resource_type, name in resources:
            if resource_type == ConfigResourceType.TOPIC:
                self._topics.pop(name, None)
            elif resource_type == ConfigResourceType.GROUP:
                self._groups.pop(name, None)
            elif resource_type == ConfigResourceType.BROKER and name in broker_names:
                self._topics.clear()
                self._groups.clear()
                self._read_broker()

    def validate_topic(self, configs: Mapping[str, str | None]) -> None:
        """Raises InvalidConfig if a topic cannot have these settings."""
        tiered_storage = self.broker("remote.log.storage.system.enable")
        validate_topic(configs, self._topic_defaults, tiered_storage=tiered_storage)

    def validate_broker(self, configs: Mapping[str, str | None], *, broker_id: int | None) -> None:
        """Raises InvalidConfig if this broker (None: every broker) cannot have these settings.

        What a value of another node refers to, only that node knows.
        """
        cluster_configs = (
            _NO_CONFIGS if broker_id is None else self.overrides(ConfigResourceType.BROKER, "")
        )
        if broker_id != self.static.node_id:
            configs = _without_references(configs)
            cluster_configs = _without_references(cluster_configs)
        validate_broker(
            configs,
            broker_id=broker_id,
            settings=self.static,
            cluster_configs=cluster_configs,
            current=self._effective_for(broker_id),
        )

    def validate_group(self, configs: Mapping[str, str | None]) -> None:
        """Raises InvalidConfig if a group cannot have these settings."""
        validate_group(configs, self.static)

    def broker_values(self, own: Mapping[str, str]) -> dict[str, Any]:
        """Returns the values of a broker that has this node's file and these dynamic settings."""
        cluster = self.overrides(ConfigResourceType.BROKER, "")
        stored = {**cluster, **own}
        texts, problems = resolve_references(stored, self.static.explicit)
        for problem in problems:
            log.warning("Ignoring a dynamic setting: %s", problem)
        return {**self.static, **_parse_dynamic(texts, stored)}

    def _effective_for(self, broker_id: int | None) -> dict[str, Any]:
        """Returns the values of a broker with this node's file; None: of one without own ones."""
        own = _NO_CONFIGS
        if broker_id is not None:
            own = self.overrides(ConfigResourceType.BROKER, str(broker_id))
        if broker_id == self.static.node_id:
            return self.broker_values(own)
        stored = {**self.overrides(ConfigResourceType.BROKER, ""), **own}
        texts = _without_references(stored)
        return {**self.static, **_parse_dynamic(texts, texts)}

    def _read_broker(self) -> None:
        self._broker = self._effective_for(self.static.node_id)
        self._topic_defaults: TopicConfig = MappingProxyType(
            {
                name: inherited_value(setting, self._broker)
                for name, setting in topic.SETTINGS.items()
            }
        )
        self._group_defaults: GroupConfig = MappingProxyType(
            {
                name: inherited_value(setting, self._broker)
                for name, setting in group.SETTINGS.items()
            }
        )


def _without_references(configs: Mapping[str, T]) -> dict[str, T]:
    return {name: text for name, text in configs.items() if text is None or not has_reference(text)}


def _parse_dynamic(texts: Mapping[str, str], stored: Mapping[str, str]) -> dict[str, Any]:
    dynamic = {
        name: setting
        for name in texts
        if (setting := broker.find(name)) is not None and setting.update != READ_ONLY
    }
    return _parse_valid(texts, dynamic, stored)


def _parse_valid(
    texts: Mapping[str, str],
    settings: Mapping[str, Setting],
    stored: Mapping[str, str] = _NO_CONFIGS,
) -> dict[str, Any]:
    """Returns typed values. Stored settings that are unknown or invalid today count as unset.

    `stored` are the texts before references were resolved: what these refer to is not logged.
    """
    values = {}
    for name, text in texts.items():
        if name not in settings:
            continue
        try:
            values[name] = settings[name].parse(text)
        except InvalidConfig as problem:
            shown = without_resolved(problem, settings[name], text, stored.get(name, text))
            log.warning("Ignoring a dynamic setting: %s", shown)
    return values
