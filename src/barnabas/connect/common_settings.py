"""The settings that every connector has, with Kafka's types, defaults, groups and orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from barnabas.connect.config_def import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    Validator,
    Width,
    at_least,
    one_of,
    parse_value,
)
from barnabas.connect.errors import InvalidConfigError
from barnabas.connect.plugins import Plugin, PluginKind, all_plugins
from barnabas.connect.transforms.java_regex import compile_java

COMMON: Final = "Common"
TRANSFORMS: Final = "Transforms"
PREDICATES: Final = "Predicates"
ERROR_HANDLING: Final = "Error Handling"
TOPIC_CREATION: Final = "Topic Creation"
EXACTLY_ONCE_SUPPORT: Final = "Exactly Once Support"
OFFSETS_TOPIC: Final = "offsets.topic"
EXECUTION: Final = "Execution"

DEFAULT_HEADER_CONVERTER: Final = "org.apache.kafka.connect.storage.SimpleHeaderConverter"


@dataclass(slots=True, frozen=True)
class OrderedSetting:
    """A setting with its order in its group."""

    setting: ConnectorSetting
    order: int = -1
    """-1 for a setting without a group."""


def ordered(config_def: ConfigDef) -> list[OrderedSetting]:
    """Returns the settings with orders that follow the order of their definition."""
    orders: dict[str, int] = {}
    result = []
    for setting in config_def:
        if setting.group is None:
            result.append(OrderedSetting(setting))
            continue
        orders[setting.group] = orders.get(setting.group, 0) + 1
        result.append(OrderedSetting(setting, orders[setting.group]))
    return result


def common_settings(
    kind: PluginKind, version: str | None, worker: Mapping[str, str] | None = None
) -> list[OrderedSetting]:
    """Returns the settings of all sources or of all sinks.

    `version` is that of the connector. With the settings of a worker, its converters are defaults.
    """
    own = _OF_SINKS if kind is PluginKind.SINK else _OF_SOURCES
    settings = [*_for_all(version), *own, *_OF_EXECUTION]
    if worker is None:
        return settings
    return [_with_default_of(worker, each) for each in settings]


# Validators


def name_without_control_characters(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not value:
        return "String may not be empty"
    found = sorted({ord(character) for character in value if ord(character) < 0x20})
    if not found:
        return None
    listed = ", ".join(map(str, found))
    return f"String may not contain control sequences but had the following ASCII chars: {listed}"


def unique_aliases(name: str, value: Any) -> str | None:
    if value is None:
        return "entry must be non null"
    return "Duplicate alias provided." if len(set(value)) < len(value) else None


def regular_expression(name: str, value: Any) -> str | None:
    try:
        compile_java(value.strip())
    except InvalidConfigError as error:
        return f"Invalid regex: {error}"
    return None


def _at_least_zero_or_unset(name: str, value: Any) -> str | None:
    return None if value is None else at_least(0)(name, value)


def _non_empty_or_unset(name: str, value: Any) -> str | None:
    return "String must be non-empty" if value == "" else None


def _regular_expressions(name: str, value: Any) -> str | None:
    for each in value or ():
        complaint = regular_expression(name, each)
        if complaint is not None:
            return f"Syntax error in regular expression: {complaint.partition(': ')[2]}"
    return None


def _positive_or_default(what: str) -> Validator:
    def validate(name: str, value: Any) -> str | None:
        if value is None or value == -1 or value > 0:
            return None
        return f"{what}, or -1 to use the broker's default"

    return validate


_REPLICATION_FACTOR: Final = _positive_or_default(
    "Replication factor must be positive and not larger than the number of brokers in the Kafka "
    "cluster"
)
_PARTITIONS: Final = _positive_or_default("Number of partitions must be positive")


def installed_version(plugin: Plugin | None, version: str | None) -> Validator:
    """Accepts the only version of a plugin that there can be."""
    of = "the plugin" if plugin is None else plugin.name

    def validate(name: str, value: Any) -> str | None:
        if value is None or value == version:
            return None
        return f"Version {version or 'undefined'} of {of} is installed, and there can be only one"

    return validate


# Definitions


def _for_all(version: str | None) -> list[OrderedSetting]:
    common = (
        ConnectorSetting(
            "name",
            ConfigType.STRING,
            doc="The name of the connector, which no other connector of the cluster has.",
            importance=Importance.HIGH,
            validator=name_without_control_characters,
            group=COMMON,
            width=Width.MEDIUM,
            display_name="Connector name",
        ),
        ConnectorSetting(
            "connector.class",
            ConfigType.STRING,
            doc="The class of the connector: Java's class name, its short form such as "
            "FileStreamSink, the name of an installed plugin, or module:Class.",
            importance=Importance.HIGH,
            group=COMMON,
            width=Width.LONG,
            display_name="Connector class",
        ),
        ConnectorSetting(
            "connector.plugin.version",
            ConfigType.STRING,
            version,
            doc="The version of the connector: the one that is installed.",
            validator=installed_version(None, version),
            recommender=lambda _: [] if version is None else [version],
            group=COMMON,
            width=Width.MEDIUM,
            display_name="Connector version",
        ),
        ConnectorSetting(
            "tasks.max",
            ConfigType.INT,
            1,
            doc="How many tasks the connector may have.",
            importance=Importance.HIGH,
            validator=at_least(1),
            group=COMMON,
            width=Width.SHORT,
            display_name="Tasks max",
        ),
        ConnectorSetting(
            "tasks.max.enforce",
            ConfigType.BOOLEAN,
            True,
            doc="Deprecated. Connectors here never have more tasks than tasks.max.",
            importance=Importance.LOW,
            group=COMMON,
            width=Width.SHORT,
            display_name="Enforce tasks max",
        ),
        *_converter_settings("key"),
        *_converter_settings("value"),
        *_converter_settings("header"),
        ConnectorSetting(
            "transforms",
            ConfigType.LIST,
            [],
            doc="Aliases of the transforms that are applied to each record, in this order.",
            importance=Importance.LOW,
            validator=unique_aliases,
            group=TRANSFORMS,
            width=Width.LONG,
            display_name="Transforms",
        ),
        ConnectorSetting(
            "predicates",
            ConfigType.LIST,
            [],
            doc="Aliases of the predicates that transforms refer to.",
            importance=Importance.LOW,
            validator=unique_aliases,
            group=PREDICATES,
            width=Width.LONG,
            display_name="Predicates",
        ),
        ConnectorSetting(
            "config.action.reload",
            ConfigType.STRING,
            "restart",
            doc="What happens when a value that a config provider keeps has changed: restart "
            "starts the connector again, none does nothing.",
            importance=Importance.LOW,
            validator=one_of("none", "restart"),
            group=COMMON,
            width=Width.MEDIUM,
            display_name="Reload Action",
        ),
    )
    errors = (
        ConnectorSetting(
            "errors.retry.timeout",
            ConfigType.LONG,
            0,
            doc="For how many milliseconds a failed operation is retried. 0 means not at all, and "
            "-1 means without an end.",
            group=ERROR_HANDLING,
            width=Width.MEDIUM,
            display_name="Retry Timeout for Errors",
        ),
        ConnectorSetting(
            "errors.retry.delay.max.ms",
            ConfigType.LONG,
            60_000,
            doc="The longest time between two retries, in milliseconds.",
            group=ERROR_HANDLING,
            width=Width.MEDIUM,
            display_name="Maximum Delay Between Retries for Errors",
        ),
        ConnectorSetting(
            "errors.tolerance",
            ConfigType.STRING,
            "none",
            doc="With none, the first error fails the task; with all, records with errors are "
            "skipped.",
            validator=one_of("none", "all"),
            group=ERROR_HANDLING,
            width=Width.SHORT,
            display_name="Error Tolerance",
        ),
        ConnectorSetting(
            "errors.log.enable",
            ConfigType.BOOLEAN,
            False,
            doc="Whether errors that are tolerated are logged too.",
            group=ERROR_HANDLING,
            width=Width.SHORT,
            display_name="Log Errors",
        ),
        ConnectorSetting(
            "errors.log.include.messages",
            ConfigType.BOOLEAN,
            False,
            doc="Whether the log of an error shows the record, which may hold confidential data.",
            group=ERROR_HANDLING,
            width=Width.SHORT,
            display_name="Log Error Details",
        ),
    )
    return [
        *(OrderedSetting(setting, order) for order, setting in enumerate(common, 1)),
        *(OrderedSetting(setting, order) for order, setting in enumerate(errors, 1)),
    ]


def _converter_settings(part: str) -> tuple[ConnectorSetting, ConnectorSetting]:
    what = part.capitalize()
    kind = PluginKind.HEADER_CONVERTER if part == "header" else PluginKind.CONVERTER

    def names(_: Mapping[str, Any]) -> Sequence[str]:
        return [plugin.name for plugin in all_plugins(kind)]

    return (
        ConnectorSetting(
            f"{part}.converter",
            ConfigType.CLASS,
            None,
            doc=f"The class that converts the {part}s of records between bytes and Connect's data. "
            f"Without it, the worker's {part}.converter is used with its settings.",
            importance=Importance.LOW,
            recommender=names,
            group=COMMON,
            width=Width.SHORT,
            display_name=f"{what} converter class",
        ),
        ConnectorSetting(
            f"{part}.converter.plugin.version",
            ConfigType.STRING,
            None,
            doc=f"The version of the {part} converter: the one that is installed.",
            importance=Importance.LOW,
            group=COMMON,
            width=Width.SHORT,
            display_name=f"{what} converter version",
        ),
    )


def _with_default_of(worker: Mapping[str, str], each: OrderedSetting) -> OrderedSetting:
    """Makes what the worker has the default."""
    setting = each.setting
    if setting.group == EXECUTION:
        text = worker.get(setting.name, str(setting.default))
        default: Any = parse_value(setting.name, text, setting.type)
    elif setting.name == "header.converter":
        default = worker.get(setting.name) or DEFAULT_HEADER_CONVERTER
    elif setting.name in ("key.converter", "value.converter"):
        default = worker.get(setting.name)
    else:
        return each
    return replace(each, setting=replace(setting, default=default))


_DEAD_LETTERS: Final = (
    OrderedSetting(
        ConnectorSetting(
            "errors.deadletterqueue.topic.name",
            ConfigType.STRING,
            "",
            doc="The topic that gets the records which cannot be converted, transformed or "
            "written. Without it, they are written nowhere.",
            group=ERROR_HANDLING,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Name",
        ),
        6,
    ),
    OrderedSetting(
        ConnectorSetting(
            "errors.deadletterqueue.topic.replication.factor",
            ConfigType.SHORT,
            3,
            doc="The replication factor of the dead letter queue if it has to be created.",
            group=ERROR_HANDLING,
            width=Width.MEDIUM,
            display_name="Dead Letter Queue Topic Replication Factor",
        ),
        7,
    ),
    OrderedSetting(
        ConnectorSetting(
            "errors.deadletterqueue.context.headers.enable",
            ConfigType.BOOLEAN,
            False,
            doc="Whether records in the dead letter queue have headers that describe the error. "
            "Their names begin with __connect.errors.",
            group=ERROR_HANDLING,
            width=Width.MEDIUM,
            display_name="Enable Error Context Headers",
        ),
        8,
    ),
)
"""Kafka has these for sinks only."""

_OF_SINKS: Final = (
    OrderedSetting(
        ConnectorSetting(
            "topics",
            ConfigType.LIST,
            [],
            doc="The topics to read, separated by commas.",
            importance=Importance.HIGH,
            group=COMMON,
            width=Width.LONG,
            display_name="Topics",
        ),
        4,
    ),
    OrderedSetting(
        ConnectorSetting(
            "topics.regex",
            ConfigType.STRING,
            "",
            doc="A regular expression that the names of the topics to read match as a whole, "
            "instead of topics.",
            importance=Importance.HIGH,
            validator=regular_expression,
            group=COMMON,
            width=Width.LONG,
            display_name="Topics regex",
        ),
        4,
    ),
    *_DEAD_LETTERS,
)

_OF_SOURCES: Final = (
    OrderedSetting(
        ConnectorSetting(
            "topic.creation.groups",
            ConfigType.LIST,
            [],
            doc="Aliases of groups of topics that are created with settings of their own.",
            importance=Importance.LOW,
            validator=unique_aliases,
            group=TOPIC_CREATION,
            width=Width.LONG,
            display_name="Topic Creation Groups",
        ),
        1,
    ),
    OrderedSetting(
        ConnectorSetting(
            "exactly.once.support",
            ConfigType.STRING,
            "requested",
            doc="With required, the connector is created only if it writes exactly once: the "
            "connector and the worker have to support it.",
            validator=one_of("REQUIRED", "REQUESTED", ignore_case=True),
            group=EXACTLY_ONCE_SUPPORT,
            width=Width.SHORT,
            display_name="Exactly once support",
        ),
        2,
    ),
    OrderedSetting(
        ConnectorSetting(
            "transaction.boundary",
            ConfigType.STRING,
            "poll",
            doc="When the transactions of an exactly-once source are committed: after each batch "
            "(poll), or after transaction.boundary.interval.ms (interval).",
            validator=one_of("INTERVAL", "POLL", "CONNECTOR", ignore_case=True),
            group=EXACTLY_ONCE_SUPPORT,
            width=Width.SHORT,
            display_name="Transaction Boundary",
        ),
        3,
    ),
    OrderedSetting(
        ConnectorSetting(
            "transaction.boundary.interval.ms",
            ConfigType.LONG,
            None,
            doc="The time between two commits if transaction.boundary is interval. Without it, "
            "the worker's offset.flush.interval.ms.",
            importance=Importance.LOW,
            validator=_at_least_zero_or_unset,
            group=EXACTLY_ONCE_SUPPORT,
            width=Width.SHORT,
            display_name="Transaction boundary interval",
        ),
        4,
    ),
    OrderedSetting(
        ConnectorSetting(
            "offsets.storage.topic",
            ConfigType.STRING,
            None,
            doc="A topic of its own for the positions of the connector, which is created if it "
            "does not exist. Without it, the worker's offset.storage.topic.",
            importance=Importance.LOW,
            validator=_non_empty_or_unset,
            group=OFFSETS_TOPIC,
            width=Width.LONG,
            display_name="Offsets topic",
        ),
        1,
    ),
    *_DEAD_LETTERS,
)


_OF_EXECUTION: Final = tuple(
    OrderedSetting(setting, order)
    for order, setting in enumerate(
        (
            ConnectorSetting(
                "barnabas.max.rows.per.task",
                ConfigType.INT,
                500_000,
                doc="How many rows a task reads and writes at most before they are committed.",
                importance=Importance.LOW,
                validator=at_least(1),
                group=EXECUTION,
                width=Width.MEDIUM,
                display_name="Rows per Task",
            ),
            ConnectorSetting(
                "barnabas.restart.initial.ms",
                ConfigType.LONG,
                1_000,
                doc="How long a failed task waits for its first restart; each further pause is "
                "twice as long. 0 means that it is not restarted.",
                importance=Importance.LOW,
                validator=at_least(0),
                group=EXECUTION,
                width=Width.MEDIUM,
                display_name="First Pause before a Restart",
            ),
            ConnectorSetting(
                "barnabas.restart.max.ms",
                ConfigType.LONG,
                60_000,
                doc="The longest pause before a failed task is restarted.",
                importance=Importance.LOW,
                validator=at_least(0),
                group=EXECUTION,
                width=Width.MEDIUM,
                display_name="Longest Pause before a Restart",
            ),
            ConnectorSetting(
                "barnabas.query",
                ConfigType.STRING,
                "shared",
                doc="With shared, the connector is in one streaming query with others; with "
                "dedicated, it has a query of its own.",
                importance=Importance.LOW,
                validator=one_of("shared", "dedicated", ignore_case=True),
                group=EXECUTION,
                width=Width.SHORT,
                display_name="Query",
            ),
        ),
        1,
    )
)
"""Kafka has none of these. The settings of the worker of the same names are their defaults."""


# Topics that sources create

DEFAULT_GROUP: Final = "default"
TOPIC_CREATION_PREFIX: Final = "topic.creation."


def topic_creation_settings(
    alias: str, defaults: Mapping[str, int] | None = None
) -> list[OrderedSetting]:
    """Returns the settings of a group, without prefix. `defaults` are those of the default group,
    which itself has none."""
    is_default = defaults is None
    group = DEFAULT_GROUP if is_default else f"{TOPIC_CREATION}: {alias}"

    def number(
        name: str, type_: ConfigType, validator: Validator, doc: str, title: str
    ) -> ConnectorSetting:
        return ConnectorSetting(
            name,
            type_,
            REQUIRED if defaults is None else defaults.get(name, -1),
            doc=doc,
            importance=Importance.LOW,
            validator=validator,
            group=group,
            width=Width.LONG,
            display_name=f"{title} {group}",
        )

    settings = (
        ConnectorSetting(
            "include",
            ConfigType.LIST,
            [".*"] if is_default else [],
            doc="Regular expressions of the names of the topics that belong to the group.",
            importance=Importance.LOW,
            validator=_regular_expressions,
            group=group,
            width=Width.LONG,
            display_name=f"Inclusion Topic Pattern for {group}",
        ),
        ConnectorSetting(
            "exclude",
            ConfigType.LIST,
            [],
            doc="Regular expressions of the names of topics that do not belong to the group, even "
            "if include matches.",
            importance=Importance.LOW,
            validator=_regular_expressions,
            group=group,
            width=Width.LONG,
            display_name=f"Exclusion Topic Pattern for {group}",
        ),
        number(
            "replication.factor",
            ConfigType.SHORT,
            _REPLICATION_FACTOR,
            "The replication factor of new topics of the group; -1 for the broker's default.",
            "Replication Factor for Topics in",
        ),
        number(
            "partitions",
            ConfigType.INT,
            _PARTITIONS,
            "The number of partitions of new topics of the group; -1 for the broker's default.",
            "Partition Count for Topics in",
        ),
    )
    return [OrderedSetting(setting, order) for order, setting in enumerate(settings)]
