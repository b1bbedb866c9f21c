"""Settings in force and where each comes from: what DescribeConfigs answers.

A value's synonyms are all places that could have given it, the one that did first. Of settings in
several units (log.retention.ms, .minutes, .hours) those in force before the one asked for are left
out, as Kafka leaves them out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.changes import ResourceType
from barnabas.config.dynamic import Resolver
from barnabas.config.setting import REQUIRED, STATIC, Setting, Type, to_text


class Source(IntEnum):
    """Where a value comes from; the numbers are DescribeConfigs' own."""

    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class Synonym(NamedTuple):
    name: str
    value: str | None
    source: Source


class Described(NamedTuple):
    """One setting of a resource. No type is an unknown setting, which is shown as if secret."""

    name: str
    value: str | None
    source: Source
    synonyms: tuple[Synonym, ...]
    type: Type | None
    read_only: bool
    sensitive: bool


Names = Collection[str] | None


def describe_topic(resolver: Resolver, topic_name: str, names: Names = None) -> list[Described]:
    """All settings of a topic, or those of `names` that it has."""
    own = resolver.overrides(ResourceType.TOPIC, topic_name)
    values = resolver.topic(topic_name)
    layers = _broker_layers(resolver)
    return [
        _describe_own(setting, values, own, Source.TOPIC, _inherited_synonyms(setting, layers))
        for setting in _listed(topic.SETTINGS, own, names)
    ]


def describe_group(resolver: Resolver, group_name: str, names: Names = None) -> list[Described]:
    """All settings of a group, or those of `names` that it has."""
    own = resolver.overrides(ResourceType.GROUP, group_name)
    values = resolver.group(group_name)
    layers = _broker_layers(resolver)
    described = []
    for setting in _listed(group.SETTINGS, own, names):
        synonyms = _inherited_synonyms(setting, layers)
        if not setting.synonyms:
            synonyms = [Synonym(setting.name, to_text(setting.default), Source.DEFAULT)]
        described.append(_describe_own(setting, values, own, Source.GROUP, synonyms))
    return described


def describe_client_metrics(
    resolver: Resolver, subscription: str, names: Names = None
) -> list[Described]:
    """All settings of a client metrics subscription, or those of `names` that it has."""
    own = resolver.overrides(ResourceType.CLIENT_METRICS, subscription)
    values = {
        name: setting.parse(own[name]) if name in own else setting.default
        for name, setting in client_metrics.SETTINGS.items()
    }
    return [
        _describe_own(setting, values, own, Source.CLIENT_METRICS, [])
        for setting in _listed(client_metrics.SETTINGS, own, names)
    ]


def describe_broker(resolver: Resolver, names: Names = None) -> list[Described]:
    """All settings of this broker, also unknown ones that somebody has set."""
    layers = _broker_layers(resolver)
    every = {name: None for name, setting in broker.SETTINGS.items() if not setting.internal}
    for _, texts in layers[:-1]:
        every |= dict.fromkeys(texts)
    return [
        _describe_broker_setting(name, _broker_value(name, resolver, layers), layers)
        for name in every
        if names is None or name in names
    ]


def describe_cluster(resolver: Resolver, names: Names = None) -> list[Described]:
    """The dynamic settings that all brokers have."""
    texts = resolver.overrides(ResourceType.BROKER, "")
    return [
        _describe_broker_setting(name, text, [(Source.CLUSTER, texts)])
        for name, text in texts.items()
        if names is None or name in names
    ]


# Where a broker setting can be set, nearest first, and the text that it has there.
_Layers = list[tuple[Source, Mapping[str, str]]]


def _broker_layers(resolver: Resolver) -> _Layers:
    return [
        (Source.BROKER, resolver.overrides(ResourceType.BROKER, str(resolver.static.node_id))),
        (Source.CLUSTER, resolver.overrides(ResourceType.BROKER, "")),
        (Source.FILE, resolver.static.given),
        (Source.DEFAULT, _DEFAULT_TEXTS),
    ]


def _listed(
    settings: Mapping[str, Setting], own: Mapping[str, str], names: Names
) -> Iterator[Setting]:
    for name, setting in settings.items():
        if (names is None or name in names) and (not setting.internal or name in own):
            yield setting


def _describe_own(
    setting: Setting,
    values: Mapping[str, Any],
    own: Mapping[str, str],
    source: Source,
    inherited: Iterable[Synonym],
) -> Described:
    value = to_text(values[setting.name])
    synonyms = tuple(inherited)
    if setting.name in own:
        synonyms = (Synonym(setting.name, value, source), *synonyms)
    return Described(
        name=setting.name,
        value=value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms=synonyms,
        type=setting.type,
        read_only=False,
        sensitive=False,
    )


def _inherited_synonyms(setting: Setting, layers: _Layers) -> list[Synonym]:
    return _broker_synonyms(setting.synonyms[0], layers) if setting.synonyms else []


def _describe_broker_setting(name: str, value: str | None, layers: _Layers) -> Described:
    setting = broker.find(name)
    sensitive = setting is None or setting.type is Type.PASSWORD
    synonyms = _broker_synonyms(name, layers)
    if sensitive:
        value = None
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    return Described(
        name=name,
        value=value,
        source=synonyms[0].source if synonyms else Source.DEFAULT,
        synonyms=tuple(synonyms),
        type=setting.type if setting is not None else None,
        # With a listener's prefix a setting can change and yet is called read-only, as in Kafka.
        read_only=setting is None or setting.name != name or setting.dynamic == STATIC,
        sensitive=sensitive,
    )


def _broker_synonyms(name: str, layers: _Layers) -> list[Synonym]:
    family = _family(name)
    synonyms = [
        Synonym(relative, texts[relative], source)
        for source, texts in layers
        for relative in family
        if relative in texts
    ]
    while synonyms and synonyms[0].name != name:
        del synonyms[0]
    return synonyms


def _broker_value(name: str, resolver: Resolver, layers: _Layers) -> str | None:
    if name not in broker.SETTINGS:
        return next(texts[name] for _, texts in layers if name in texts)
    dynamic = [texts for source, texts in layers if source in (Source.BROKER, Source.CLUSTER)]
    if not any(name in texts for texts in dynamic):
        relatives = _family(name)
        if any(relative in texts for texts in dynamic for relative in relatives):
            # A dynamic value in one unit hides what the file says in the others.
            return to_text(broker.SETTINGS[name].default)
    return to_text(resolver.broker(name))


def _family(name: str) -> tuple[str, ...]:
    """The names that a setting is looked up by: its other units, or itself without a prefix."""
    base = broker.base_name(name)
    return (name, base) if base != name else _UNITS.get(name, (name,))


_UNITS = {
    name: setting.synonyms
    for setting in topic.SETTINGS.values()
    if len(setting.synonyms) > 1
    for name in setting.synonyms
}

_DEFAULT_TEXTS = {
    name: text
    for name, setting in broker.SETTINGS.items()
    if setting.default is not REQUIRED and (text := to_text(setting.default)) is not None
}
