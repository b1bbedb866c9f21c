"""The configs of a new topic, as CreateTopics returns them (KIP-525)."""

from collections.abc import Mapping

from barnabas.config import topic
from barnabas.config.describe import Source, describe_topic
from barnabas.config.dynamic import Resolver
from barnabas.config.setting import to_text
from barnabas.wire.messages.create_topics import CreatableTopicConfigs

_NO_TOPIC = ""  # has no configs of its own, as no topic can have this name


class EffectiveTopicConfigs:
    """Describes the default configs once for all topics, until the defaults change."""

    __slots__ = ("_defaults", "_described", "_resolver")

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._described: list[CreatableTopicConfigs] = []
        self._defaults: object = None

    def describe(self, overrides: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """Returns the configs of a topic with these overrides, which are valid.

        The caller must not change the list.
        """
        if self._defaults is not self._resolver.topic_defaults:
            self._defaults = self._resolver.topic_defaults
            self._described = [
                CreatableTopicConfigs(
                    name=setting.name,
                    value=setting.value,
                    read_only=setting.read_only,
                    config_source=setting.source,
                    is_sensitive=setting.sensitive,
                )
                for setting in describe_topic(self._resolver, _NO_TOPIC)
            ]
        if not overrides:
            return self._described
        return [
            _overridden(overrides[config.name], config.name) if config.name in overrides else config
            for config in self._described
        ]


def _overridden(text: str, name: str) -> CreatableTopicConfigs:
    value = to_text(topic.SETTINGS[name].parse(text))
    return CreatableTopicConfigs(name=name, value=value, config_source=Source.TOPIC)
