"""The effective settings of a resource and their sources, for DescribeConfigs.

The synonyms of a setting are the names and sources that can set its value, the effective one first.
If a setting has names in several units (log.retention.ms, .minutes, .hours), those with a higher
precedence than the described name are left out, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.changes import ConfigResourceType
from barnabas.config.resolver import ConfigResolver
from barnabas.config.setting import READ_ONLY, REQUIRED, Setting, SettingType, to_text


class SettingSource(IntEnum):
    """Where a value comes from, with the numbers of DescribeConfigs."""

    TOPIC = 1
    BROKER = 2
    CLUSTER = 3
    FILE = 4
    DEFAULT = 5
    LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class SettingSynonym(NamedTuple):
    name: str
    value: str | None
    source: SettingSource


class DescribedSetting(NamedTuple):
    """A setting of a resource. An unknown setting has no type, and its value is not shown."""

    name: str
    value: str | None
    source: SettingSource
    synonyms: tuple[SettingSynonym, ...]
    type: SettingType | None
    read_only: bool
    sensitive: bool


Names = Collection[str] | None


def describe_topic(
    resolver: ConfigResolver, topic_name: str, names: Names = None
) -> list[DescribedSetting]:
    """Describes all settings of a topic, or those in `names`."""
    own = resolver.overrides(ConfigResourceType.TOPIC, topic_name)
    values = resolver.topic(topic_name)
    layers = _broker_layers(resolver)
    return [
        _describe_own(
            setting, values, own, SettingSource.TOPIC, _inherited_synonyms(setting, layers)
        )
        for setting in _listed(topic.SETTINGS, own, names)
    ]


def describe_group(
    resolver: ConfigResolver, group_name: str, names: Names = None
) -> list[DescribedSetting]:
    """Describes all settings of a group, or those in `names`."""
    own = resolver.overrides(ConfigResourceType.GROUP, group_name)
    values = resolver.group(group_name)
    layers = _broker_layers(resolver)
    described = []
    for setting in _listed(group.SETTINGS, own, names):
        synonyms = _inherited_synonyms(setting, layers)
        if not setting.synonyms:
            synonyms = [
                SettingSynonym(setting.name, to_text(setting.default), SettingSource.DEFAULT)
            ]
        described.append(_describe_own(setting, values, own, SettingSource.GROUP, synonyms))
    return described


def describe_client_metrics(
    resolver: ConfigResolver, subscription: str, names: Names = None
) -> list[DescribedSetting]:
    """Describes all settings of a client metrics subscription, or those in `names`."""
    own = resolver.overrides(ConfigResourceType.CLIENT_METRICS, subscription)
    values = {
        name: setting.parse(own[name]) if name in own else setting.default
        for name, setting in client_metrics.SETTINGS.items()
    }
    return [
        _describe_own(setting, values, own, SettingSource.CLIENT_METRICS, [])
        for setting in _listed(client_metrics.SETTINGS, own, names)
    ]


def describe_broker(resolver: ConfigResolver, names: Names = None) -> list[DescribedSetting]:
    """Describes all settings of this broker, also unknown ones that are set."""
    layers = _broker_layers(resolver)
    described = {name: None for name, setting in broker.SETTINGS.items() if not setting.internal}
    for _, texts in layers[:-1]:
        described |= dict.fromkeys(texts)
    return [
        _describe_broker_setting(name, _broker_value(name, resolver, layers), layers)
        for name in described
        if names is None or name in names
    ]


def describe_cluster(resolver: ConfigResolver, names: Names = None) -> list[DescribedSetting]:
    """Describes the cluster-wide dynamic settings."""
    texts = resolver.overrides(ConfigResourceType.BROKER, "")
    return [
        _describe_broker_setting(name, text, [(SettingSource.CLUSTER, texts)])
        for name, text in texts.items()
        if names is None or name in names
    ]


# The sources of broker settings with their texts, in the order of precedence.
_Layers = list[tuple[SettingSource, Mapping[str, str]]]


def _broker_layers(resolver: ConfigResolver) -> _Layers:
    return [
        (
            SettingSource.BROKER,
            resolver.overrides(ConfigResourceType.BROKER, str(resolver.static.node_id)),
        ),
        (SettingSource.CLUSTER, resolver.overrides(ConfigResourceType.BROKER, "")),
        (SettingSource.FILE, resolver.static.explicit),
        (SettingSource.DEFAULT, _DEFAULT_TEXTS),
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
    source: SettingSource,
    inherited: Iterable[SettingSynonym],
) -> DescribedSetting:
    value = to_text(values[setting.name])
    synonyms = tuple(inherited)
    if setting.name in own:
        synonyms = (SettingSynonym(setting.name, value, source), *synonyms)
    return DescribedSetting(
        name=setting.name,
        value=value,
        source=synonyms[0].source if synonyms else SettingSource.DEFAULT,
        synonyms=synonyms,
        type=setting.type,
        read_only=False,
        sensitive=False,
    )


def _inherited_synonyms(setting: Setting, layers: _Layers) -> list[SettingSynonym]:
    return _broker_synonyms(setting.synonyms[0], layers) if setting.synonyms else []


def _describe_broker_setting(name: str, value: str | None, layers: _Layers) -> DescribedSetting:
    setting = broker.find(name)
    sensitive = setting is None or setting.type is SettingType.PASSWORD
    synonyms = _broker_synonyms(name, layers)
    if sensitive:
        value = None
        synonyms = [synonym._replace(value=None) for synonym in synonyms]
    return DescribedSetting(
        name=name,
        value=value,
        source=synonyms[0].source if synonyms else SettingSource.DEFAULT,
        synonyms=tuple(synonyms),
        type=setting.type if setting is not None else None,
        # With a listener's prefix a setting can change but is reported as read-only, as in Kafka.
        read_only=setting is None or setting.name != name or setting.update == READ_ONLY,
        sensitive=sensitive,
    )


def _broker_synonyms(name: str, layers: _Layers) -> list[SettingSynonym]:
    names = _names_of_value(name)
    synonyms = [
        SettingSynonym(synonym, texts[synonym], source)
        for source, texts in layers
        for synonym in names
        if synonym in texts
    ]
    while synonyms and synonyms[0].name != name:
        del synonyms[0]
    return synonyms


def _broker_value(name: str, resolver: ConfigResolver, layers: _Layers) -> str | None:
    if name not in broker.SETTINGS:
        return next(texts[name] for _, texts in layers if name in texts)
    dynamic = [
        texts for source, texts in layers if source in (SettingSource.BROKER, SettingSource.CLUSTER)
    ]
    if not any(name in texts for texts in dynamic):
        names = _names_of_value(name)
        if any(synonym in texts for texts in dynamic for synonym in names):
            # A dynamic value in one unit hides the values of the file in other units.
            return to_text(broker.SETTINGS[name].default)
    return to_text(resolver.broker(name))


def _names_of_value(name: str) -> tuple[str, ...]:
    """Returns the names that set the same value: other units, or the name without a prefix."""
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
