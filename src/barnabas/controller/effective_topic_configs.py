"""The settings a topic will have, as CreateTopics tells them (KIP-525)."""

from collections.abc import Mapping

from barnabas.config import topic
from barnabas.config.describe import Source, describe_topic
from barnabas.config.dynamic import Resolver
from barnabas.config.setting import to_text
from barnabas.wire.messages.create_topics import CreatableTopicConfigs

_NO_TOPIC = ""  # has no settings of its own, as no topic can have that name


class EffectiveTopicConfigs:
    """Describes them once for all topics without settings of their own, until those change."""

    __slots__ = ("_defaults", "_described", "_resolver")

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self._described: list[CreatableTopicConfigs] = []
        self._defaults: object = None

    def describe(self, own: Mapping[str, str]) -> list[CreatableTopicConfigs]:
        """The settings of a topic with these of its own, which are valid; not to be changed."""
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
        if not own:
            return self._described
        return [
            _own(own[each.name], each.name) if each.name in own else each
            for each in self._described
        ]


def _own(text: str, name: str) -> CreatableTopicConfigs:
    value = to_text(topic.SETTINGS[name].parse(text))
    return CreatableTopicConfigs(name=name, value=value, config_source=Source.TOPIC)
