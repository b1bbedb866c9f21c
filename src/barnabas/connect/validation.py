"""Validates the settings of a connector: all errors at once, each with its setting.

A connector's settings are those of all connectors, its own, and those of its transforms,
predicates and converters. `validate` is what `PUT /connector-plugins/NAME/config/validate`
responds with, and `check_connector_config` is what the creation of a connector needs.

References to config providers have to be resolved before: see `resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.config.providers import resolve_references
from barnabas.connect.client_overrides import client_overrides
from barnabas.connect.common_settings import (
    DEFAULT_GROUP,
    DEFAULT_HEADER_CONVERTER,
    PREDICATES,
    TOPIC_CREATION_PREFIX,
    TRANSFORMS,
    OrderedSetting,
    common_settings,
    installed_version,
    ordered,
    topic_creation_settings,
)
from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
    Width,
    parse_value,
)
from barnabas.connect.connector import Connector, SinkConnector
from barnabas.connect.errors import ConnectError
from barnabas.connect.model import ConnectorKind, RequestFailedError
from barnabas.connect.plugins import (
    CONNECTOR_KINDS,
    PluginKind,
    PluginNotFoundError,
    all_plugins,
    class_name,
    find_connector,
    find_converter,
    find_header_converter,
    find_plugin,
    find_predicate,
    find_transform,
    plugin_named,
    resolve_connector,
)
from barnabas.connect.transforms.java_regex import compile_java
from barnabas.connect.validated_config import ValidatedConfig, ValidatedSetting

Config = Mapping[str, str | None]

_NULL_VALUE: Final = "Null value can not be supplied as the configuration value."
_NEITHER_TOPICS: Final = "Must configure one of topics or topics.regex"
_BOTH_TOPICS: Final = "topics and topics.regex are mutually exclusive options, but both are set."
_NO_EXACTLY_ONCE: Final = "This worker does not have exactly-once source support enabled."
_NO_BOUNDARIES: Final = (
    "The connector does not support connector-defined transaction boundaries with the given "
    "configuration. Please reconfigure it to use a different transaction boundary definition."
)
_HINT: Final = (
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{connectorType}/config/validate`"
)


def resolve(config: Config, worker: Mapping[str, str]) -> dict[str, str | None]:
    """Returns the settings with what the worker's config providers keep for them.

    Raises RequestFailed 400.
    """
    given = {name: text for name, text in config.items() if text is not None}
    resolved, problems = resolve_references(given, worker)
    if problems:
        raise RequestFailedError(400, "; ".join(problems))
    return {**config, **resolved}


def check_connector_config(
    config: Config, worker: Mapping[str, str] | None = None
) -> ConnectorKind:
    """Returns the kind of the connector. Raises RequestFailed 400 with all errors."""
    validated = validate(config, worker)
    errors = validated.errors
    if errors:
        raise RequestFailedError(
            400,
            f"Connector configuration is invalid and contains the following {len(errors)} "
            "error(s):\n" + "\n".join([*errors, _HINT]),
        )
    return validated.kind


def validate(config: Config, worker: Mapping[str, str] | None = None) -> ValidatedConfig:
    """Returns each setting with its value and errors.

    `worker` has the settings of the worker. Raises RequestFailed if there is no such connector.
    """
    worker = worker or {}
    name = config.get("connector.class")
    if name is None:
        raise RequestFailedError(
            400, f"Connector config {java_map(config)} contains no connector type"
        )
    connector = _connector(name, config)
    is_sink = issubclass(connector, SinkConnector)
    validated = ValidatedConfig(name, ConnectorKind.SINK if is_sink else ConnectorKind.SOURCE)
    sections = [
        _common_section(name, config, worker, is_sink=is_sink),
        _alias_section(config, _TRANSFORM_ALIASES),
        _alias_section(config, _PREDICATE_ALIASES),
        _topic_creation_section(config) if not is_sink else _Section(),
    ]
    common = _Section.joined(sections)
    _check_topics(config, common) if is_sink else _check_exactly_once(config, worker, common)
    _check_predicates(config, common)
    _check_converters(config, common)
    section = common.updated_with(_connector_section(connector, config))
    _check_null_values(config, section)
    own_converters = [
        _converter_section(part, config, common) for part in ("header", "key", "value")
    ]
    validated.settings = [
        *section.settings(),
        *client_overrides(config, worker, is_sink=is_sink),
        *(setting for section in own_converters for setting in section.settings()),
    ]
    return validated


def plugin_settings(name: str) -> list[OrderedSetting]:
    """Returns the settings of a plugin, and for a connector also those that all connectors have.

    Raises RequestFailed 404 if there is no such plugin.
    """
    try:
        found, kind = find_plugin(name)
    except PluginNotFoundError:
        raise RequestFailedError(404, f"Unknown plugin {name}.") from None
    own = ordered(found.config_def())
    if kind not in CONNECTOR_KINDS:
        return own
    names = {each.setting.name for each in own}
    shared = common_settings(kind, _version(resolve_connector(name), *CONNECTOR_KINDS))
    return [*own, *(each for each in shared if each.setting.name not in names)]


# Sections: settings that are validated together


@dataclass(slots=True)
class _Section:
    """Definitions and values by name; a value may have no definition."""

    definitions: dict[str, OrderedSetting] = field(default_factory=dict)
    values: dict[str, ConfigValueInfo] = field(default_factory=dict)

    @classmethod
    def validated(
        cls, definitions: Iterable[OrderedSetting], config: Config, prefix: str = ""
    ) -> _Section:
        """Validates the settings, to whose names the prefix is added."""
        prefixed = [_with_prefix(each, prefix) for each in definitions]
        config_def = ConfigDef(*(each.setting for each in prefixed))
        values = config_def.validate(config)
        return cls(
            {each.setting.name: each for each in prefixed}, {value.name: value for value in values}
        )

    @classmethod
    def joined(cls, sections: Iterable[_Section]) -> _Section:
        result = cls()
        for section in sections:
            result = result.updated_with(section)
        return result

    def updated_with(self, other: _Section) -> _Section:
        return _Section(self.definitions | other.definitions, self.values | other.values)

    def add_error(self, name: str, error: str, value: Any = None) -> None:
        self.values.setdefault(name, ConfigValueInfo(name, value)).errors.append(error)

    def settings(self) -> list[ValidatedSetting]:
        """Returns the values without a definition first, as Kafka does."""
        undefined = [
            ValidatedSetting(None, value)
            for name, value in self.values.items()
            if name not in self.definitions
        ]
        defined = [
            ValidatedSetting(definition, self.values.get(name, ConfigValueInfo(name)))
            for name, definition in self.definitions.items()
        ]
        return undefined + defined


def _with_prefix(each: OrderedSetting, prefix: str) -> OrderedSetting:
    setting = each.setting
    if not prefix:
        return each
    shown = setting.display_name if setting.display_name is not None else setting.name
    dependents = tuple(prefix + name for name in setting.dependents)
    renamed = replace(
        setting, name=prefix + setting.name, display_name=shown, dependents=dependents
    )
    return replace(each, setting=renamed)


def _connector(name: str, config: Config) -> type[Connector]:
    try:
        return find_connector(name, config)
    except ConnectError as error:
        raise RequestFailedError(400, str(error)) from None


def _version(name: str | None, *kinds: PluginKind) -> str | None:
    plugin = None if name is None else plugin_named(name, *kinds)
    return None if plugin is None else plugin.version


def _common_section(
    name: str, config: Config, worker: Mapping[str, str], *, is_sink: bool
) -> _Section:
    kind = PluginKind.SINK if is_sink else PluginKind.SOURCE
    version = _version(resolve_connector(name, config), kind)
    definitions = common_settings(kind, version, worker)
    return _Section.validated(
        [_with_converter_version(each, config, worker) for each in definitions], config
    )


def _with_converter_version(
    each: OrderedSetting, config: Config, worker: Mapping[str, str]
) -> OrderedSetting:
    """Adds the version of the converter that is used, as the only one that can be."""
    converter, suffix, _ = each.setting.name.partition(".plugin.version")
    if not suffix or converter not in _CONVERTER_KINDS:
        return each
    default = DEFAULT_HEADER_CONVERTER if converter == "header.converter" else None
    used = config.get(converter) or worker.get(converter) or default
    kind = _CONVERTER_KINDS[converter]
    plugin = None if used is None else plugin_named(used, kind)
    version = None if plugin is None else plugin.version
    setting = replace(
        each.setting,
        default=version,
        validator=installed_version(plugin, version),
        recommender=lambda _: [] if version is None else [version],
    )
    return replace(each, setting=setting)


def _connector_section(connector: type[Connector], config: Config) -> _Section:
    given = {name: value for name, value in config.items() if value is not None}
    try:
        definitions = ordered(connector.config_def())
        values = connector.validate(given)
    except RequestFailedError:
        raise
    except Exception as error:  # whatever the class of a user raises
        raise RequestFailedError(
            500, f"{connector.__name__} cannot validate: {type(error).__name__}: {error}"
        ) from error
    return _Section(
        {each.setting.name: each for each in definitions}, {value.name: value for value in values}
    )


# Rules between settings


def _is_set(config: Config, name: str) -> bool:
    return bool((config.get(name) or "").strip())


def _check_topics(config: Config, section: _Section) -> None:
    has_topics, has_regex = _is_set(config, "topics"), _is_set(config, "topics.regex")
    if has_topics == has_regex:
        for name in ("topics", "topics.regex"):
            section.add_error(name, _BOTH_TOPICS if has_topics else _NEITHER_TOPICS)
    dead_letters = (config.get("errors.deadletterqueue.topic.name") or "").strip()
    if not dead_letters:
        return
    topics = section.values["topics"].value or []
    if dead_letters in topics:
        section.add_error(
            "topics",
            f"The DLQ topic '{dead_letters}' may not be included in the list of topics "
            f"('topics=[{', '.join(topics)}]') consumed by the connector",
        )
    pattern = config.get("topics.regex") or ""
    is_valid = has_regex and not section.values["topics.regex"].errors
    if is_valid and compile_java(pattern.strip()).fullmatch(dead_letters):
        section.add_error(
            "topics.regex",
            f"The DLQ topic '{dead_letters}' may not be matched by the regex for the topics "
            f"('topics.regex={pattern}') consumed by the connector",
        )


def _check_exactly_once(config: Config, worker: Mapping[str, str], section: _Section) -> None:
    """Every source can write exactly once, because positions are written with the rows."""
    support = (config.get("exactly.once.support") or "").strip().lower()
    enabled = worker.get("exactly.once.source.support", "disabled").strip().lower() == "enabled"
    if support == "required" and not enabled:
        section.add_error("exactly.once.support", _NO_EXACTLY_ONCE)
    if (config.get("transaction.boundary") or "").strip().lower() == "connector":
        section.add_error("transaction.boundary", _NO_BOUNDARIES)


def _check_null_values(config: Config, section: _Section) -> None:
    for name, value in config.items():
        if value is None:
            section.add_error(name, _NULL_VALUE)


# Transforms and predicates


@dataclass(slots=True, frozen=True)
class _Aliases:
    """A setting that lists aliases, each of which has a class and settings of its own."""

    name: str
    group: str
    kind: PluginKind
    noun: str
    """Kafka's name of the interface."""
    find: Callable[[str], Any]
    implicit: tuple[ConnectorSetting, ...] = ()
    """Settings that each of them has."""


_TRANSFORM_ALIASES: Final = _Aliases(
    "transforms",
    TRANSFORMS,
    PluginKind.TRANSFORM,
    "Transformation",
    find_transform,
    (
        ConnectorSetting(
            "predicate",
            ConfigType.STRING,
            None,
            doc="The alias of the predicate that decides which records the transform is applied "
            "to.",
        ),
        ConnectorSetting(
            "negate",
            ConfigType.BOOLEAN,
            False,
            doc="Whether the transform is applied to the records that the predicate is false for.",
        ),
    ),
)
_PREDICATE_ALIASES: Final = _Aliases(
    "predicates", PREDICATES, PluginKind.PREDICATE, "Predicate", find_predicate
)


def _alias_section(config: Config, aliases: _Aliases) -> _Section:
    result = _Section()
    for alias in _list(config, aliases.name):
        result = result.updated_with(_section_of_alias(config, aliases, alias))
    return result


def _section_of_alias(config: Config, aliases: _Aliases, alias: str) -> _Section:
    prefix = f"{aliases.name}.{alias}."
    group = f"{aliases.group}: {alias}"
    name = (config.get(f"{prefix}type") or "").strip()
    plugin = plugin_named(name, aliases.kind) if name else None
    type_setting = ConnectorSetting(
        "type",
        ConfigType.CLASS,
        doc=f"The class of the {aliases.noun.lower()} '{alias}'.",
        importance=Importance.HIGH,
        group=group,
        width=Width.LONG,
        display_name=f"{aliases.noun} type for {alias}",
        recommender=lambda _: [each.name for each in all_plugins(aliases.kind)],
    )
    version = None if plugin is None else plugin.version
    version_setting = ConnectorSetting(
        "plugin.version",
        ConfigType.STRING,
        version,
        doc=f"The version of the {aliases.noun.lower()} '{alias}': the one that is installed.",
        importance=Importance.HIGH,
        validator=installed_version(plugin, version),
        recommender=lambda _: [] if version is None else [version],
        group=group,
        width=Width.LONG,
        display_name=f"{aliases.noun} version for {alias}",
    )
    own, error = _own_settings(name, aliases)
    grouped = [replace(setting, group=group) for setting in (type_setting, version_setting, *own)]
    definitions = [OrderedSetting(setting, order) for order, setting in enumerate(grouped)]
    section = _Section.validated(definitions, config, prefix)
    value = section.values[f"{prefix}type"]
    if error is not None and not value.errors:
        value.value = None
        value.errors.append(f"Invalid value {name} for configuration {prefix}type: {error}")
    elif not value.errors:
        value.value = class_name(name, aliases.kind)
    return section


def _own_settings(name: str, aliases: _Aliases) -> tuple[list[ConnectorSetting], str | None]:
    """Returns the settings of a transform or predicate, and what is wrong with its class."""
    if not name:
        return [], None
    try:
        config_def = aliases.find(name).config_def()
    except PluginNotFoundError as error:
        return [], f"Class {name} could not be found.{_suggestion(error)}"
    except ConnectError as error:
        return [], str(error)
    names = {setting.name for setting in aliases.implicit}
    own = [setting for setting in config_def if setting.name not in names]
    return sorted([*own, *aliases.implicit], key=_rank), None


_IMPORTANCES: Final = tuple(Importance)


def _rank(setting: ConnectorSetting) -> tuple[bool, int, str]:
    """Orders settings as Kafka does: required ones first, then by importance and name."""
    return not setting.is_required, _IMPORTANCES.index(setting.importance), setting.name


def _check_predicates(config: Config, section: _Section) -> None:
    """Finds transforms that negate no predicate, or refer to one that does not exist."""
    predicates = _list(config, "predicates")
    for alias in _list(config, "transforms"):
        prefix = f"transforms.{alias}."
        predicate = config.get(f"{prefix}predicate")
        if predicate is None and config.get(f"{prefix}negate") is not None:
            section.add_error(
                f"{prefix}type",
                f"Config '{prefix}negate' was provided but there is no config "
                f"'{prefix}predicate' defining a predicate to be negated.",
            )
        elif predicate is not None and predicate.strip() not in predicates:
            section.add_error(
                f"{prefix}predicate",
                f"Invalid value {predicate} for configuration {prefix}predicate: predicates "
                "does not list it",
            )


def _list(config: Config, name: str) -> list[str]:
    values = parse_value(name, config.get(name), ConfigType.LIST) or []
    return list(dict.fromkeys(value for value in values if value))


def _suggestion(error: PluginNotFoundError) -> str:
    question = re.search(r"Did you mean .*\?$", str(error))
    return f" {question[0]}" if question else ""


# Converters

_CONVERTER_KINDS: Final = {
    "key.converter": PluginKind.CONVERTER,
    "value.converter": PluginKind.CONVERTER,
    "header.converter": PluginKind.HEADER_CONVERTER,
}


def _find_converter(setting: str, name: str) -> Any:
    return find_header_converter(name) if setting == "header.converter" else find_converter(name)


def _check_converters(config: Config, section: _Section) -> None:
    """Finds the converters that the connector names; those of the worker were found before."""
    for setting, kind in _CONVERTER_KINDS.items():
        value = section.values[setting]
        if not value.value:
            continue
        try:
            if setting in config:
                _find_converter(setting, value.value)
        except PluginNotFoundError as error:
            value.errors.append(
                f"Invalid value {value.value} for configuration {setting}: Class {value.value} "
                f"could not be found.{_suggestion(error)}"
            )
            value.value = None
        except ConnectError as error:
            value.errors.append(str(error))
        else:
            value.value = class_name(value.value, kind)


def _converter_section(part: str, config: Config, common: _Section) -> _Section:
    """Validates a converter's settings, which count only if the connector names the converter."""
    setting = f"{part}.converter"
    name = config.get(setting)
    if name is None or common.values[setting].errors:
        return _Section()
    config_def = _find_converter(setting, name.strip()).config_def()
    prefix = f"{setting}."
    given = {
        key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)
    }
    given.setdefault("converter.type", part)
    section = _Section.validated(ordered(config_def), given)
    for value in section.values.values():
        value.name = prefix + value.name
    return _Section(
        {prefix + name: _with_prefix(each, prefix) for name, each in section.definitions.items()},
        {value.name: value for value in section.values.values()},
    )


# Topics that a source creates


def _topic_creation_section(config: Config) -> _Section:
    """Validates the groups if a source has any of their settings."""
    if not any(name.startswith(TOPIC_CREATION_PREFIX) for name in config):
        return _Section()
    prefix = f"{TOPIC_CREATION_PREFIX}{DEFAULT_GROUP}."
    section = _Section.validated(topic_creation_settings(DEFAULT_GROUP), config, prefix)
    numbers = {
        name: value
        for name in ("replication.factor", "partitions")
        if (value := section.values[prefix + name].value) is not None
    }
    for alias in _list(config, f"{TOPIC_CREATION_PREFIX}groups"):
        if alias != DEFAULT_GROUP:
            definitions = topic_creation_settings(alias, numbers)
            added = _Section.validated(definitions, config, f"{TOPIC_CREATION_PREFIX}{alias}.")
            section = section.updated_with(added)
    return section


def java_map(config: Mapping[str, Any]) -> str:
    """Returns the text that messages of Kafka show for settings."""
    entries = (f"{name}={'null' if value is None else value}" for name, value in config.items())
    return f"{{{', '.join(entries)}}}"
