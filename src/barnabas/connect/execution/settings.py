"""The settings that all connectors have, as the engine uses them.

They are parsed in the driver. What tasks need of them is pickled with the items.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, at_least, one_of
from barnabas.connect.errors import InvalidConfigError

MIN_RETRY_DELAY_MS = 300
"""The first pause of a retry, as in Kafka Connect."""

SERVERS = "bootstrap.servers"
KEY, VALUE, HEADER = "key.converter", "value.converter", "header.converter"
DEFAULT_HEADER_CONVERTER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"

_ERRORS = ConfigDef(
    ConnectorSetting(
        "errors.tolerance",
        ConfigType.STRING,
        "none",
        validator=one_of("none", "all", ignore_case=True),
    ),
    ConnectorSetting("errors.retry.timeout", ConfigType.LONG, 0, validator=at_least(-1)),
    ConnectorSetting("errors.retry.delay.max.ms", ConfigType.LONG, 60_000, validator=at_least(1)),
    ConnectorSetting("errors.log.enable", ConfigType.BOOLEAN, False),
    ConnectorSetting("errors.log.include.messages", ConfigType.BOOLEAN, False),
    ConnectorSetting("errors.deadletterqueue.topic.name", ConfigType.STRING, ""),
    ConnectorSetting("errors.deadletterqueue.topic.replication.factor", ConfigType.SHORT, 3),
    ConnectorSetting("errors.deadletterqueue.context.headers.enable", ConfigType.BOOLEAN, False),
)
_TASKS = ConfigDef(
    ConnectorSetting("tasks.max", ConfigType.INT, 1, validator=at_least(1)),
    ConnectorSetting("barnabas.max.rows.per.task", ConfigType.INT, 500_000, validator=at_least(1)),
    ConnectorSetting("barnabas.restart.initial.ms", ConfigType.LONG, 1_000, validator=at_least(0)),
    ConnectorSetting("barnabas.restart.max.ms", ConfigType.LONG, 60_000, validator=at_least(0)),
)


@dataclass(slots=True, frozen=True)
class ErrorSettings:
    """What to do about records that cannot be handled."""

    is_tolerant: bool = False
    retry_timeout_ms: int = 0
    """-1: without end."""
    retry_delay_max_ms: int = 60_000
    is_logged: bool = False
    includes_records: bool = False
    """Whether the log line has the record."""
    dead_letter_topic: str = ""
    """Empty if there is no dead letter queue."""
    dead_letter_replication_factor: int = 3
    has_context_headers: bool = False


@dataclass(slots=True, frozen=True)
class PluginSettings:
    """A converter, transform or predicate."""

    class_name: str
    """As the operator has written it."""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class TransformSettings:
    transform: PluginSettings
    predicate: PluginSettings | None = None
    is_negated: bool = False


@dataclass(slots=True, frozen=True)
class PipelineSettings:
    """The plugins that records pass through."""

    key: PluginSettings
    value: PluginSettings
    header: PluginSettings
    transforms: tuple[TransformSettings, ...] = ()


@dataclass(slots=True, frozen=True)
class TaskSettings:
    """How the work of a connector is divided, and what happens after errors."""

    tasks_max: int
    max_rows: int
    """Of one item."""
    restart_initial_ms: int
    """0: failed tasks are not restarted."""
    restart_max_ms: int


def error_settings(config: Mapping[str, str]) -> ErrorSettings:
    """Raises ConfigError."""
    values = _ERRORS.parse(config)
    prefix = "errors.deadletterqueue"
    return ErrorSettings(
        is_tolerant=values["errors.tolerance"].lower() == "all",
        retry_timeout_ms=values["errors.retry.timeout"],
        retry_delay_max_ms=values["errors.retry.delay.max.ms"],
        is_logged=values["errors.log.enable"],
        includes_records=values["errors.log.include.messages"],
        dead_letter_topic=values[f"{prefix}.topic.name"],
        dead_letter_replication_factor=values[f"{prefix}.topic.replication.factor"],
        has_context_headers=values[f"{prefix}.context.headers.enable"],
    )


def task_settings(config: Mapping[str, str], worker: Mapping[str, str]) -> TaskSettings:
    """The settings of ours may be those of the worker or of the connector. Raises ConfigError."""
    own = {name: text for name, text in worker.items() if name.startswith("barnabas.")}
    values = _TASKS.parse({**own, **config})
    return TaskSettings(
        values["tasks.max"],
        values["barnabas.max.rows.per.task"],
        values["barnabas.restart.initial.ms"],
        values["barnabas.restart.max.ms"],
    )


def pipeline_settings(config: Mapping[str, str], worker: Mapping[str, str]) -> PipelineSettings:
    """A converter of the connector replaces the worker's, with all its settings.

    Raises ConfigError.
    """
    return PipelineSettings(
        _converter(KEY, config, worker),
        _converter(VALUE, config, worker),
        _converter(HEADER, config, {HEADER: DEFAULT_HEADER_CONVERTER, **worker}),
        tuple(_transform(alias, config) for alias in listed(config, "transforms")),
    )


def listed(config: Mapping[str, str], name: str) -> list[str]:
    """Returns the entries of a list."""
    return [entry.strip() for entry in config.get(name, "").split(",") if entry.strip()]


def with_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Returns the settings that start with the prefix, by the rest of their names."""
    return {
        name.removeprefix(prefix): text for name, text in config.items() if name.startswith(prefix)
    }


def client_settings(
    kind: str, config: Mapping[str, str], worker: Mapping[str, str], without: tuple[str, ...] = ()
) -> dict[str, str]:
    """Returns the settings of a `producer`, `consumer` or `admin` client of a connector."""
    merged = {**worker, **with_prefix(config, f"{kind}.override.")}
    return {name: text for name, text in merged.items() if name not in without}


def require_one_cluster(clients: Mapping[str, str | None], reason: str) -> None:
    """Raises ConfigError unless the clients, by their kinds, have the same bootstrap.servers."""
    if len(set(clients.values())) > 1:
        shown = ", ".join(f"{kind}: {servers}" for kind, servers in clients.items())
        raise InvalidConfigError(
            f"Clients have several clusters ({shown}), and need one, because {reason}: set "
            "bootstrap.servers of all of them, as in producer.override.bootstrap.servers, or none."
        )


def _converter(name: str, config: Mapping[str, str], worker: Mapping[str, str]) -> PluginSettings:
    origin = config if config.get(name) else worker
    class_name = origin.get(name)
    if not class_name:
        raise InvalidConfigError(
            f'Missing required configuration "{name}" which has no default value.'
        )
    return _plugin(class_name, with_prefix(origin, f"{name}."))


def _transform(alias: str, config: Mapping[str, str]) -> TransformSettings:
    settings = with_prefix(config, f"transforms.{alias}.")
    class_name = settings.pop("type", None)
    if not class_name:
        name = f"transforms.{alias}.type"
        raise InvalidConfigError(
            f'Missing required configuration "{name}" which has no default value.'
        )
    predicate = settings.pop("predicate", None)
    is_negated = settings.pop("negate", "false").strip().lower() == "true"
    return TransformSettings(
        _plugin(class_name, settings),
        None if not predicate else _predicate(predicate, config),
        is_negated,
    )


def _predicate(alias: str, config: Mapping[str, str]) -> PluginSettings:
    settings = with_prefix(config, f"predicates.{alias}.")
    class_name = settings.pop("type", None)
    if not class_name:
        name = f"predicates.{alias}.type"
        raise InvalidConfigError(
            f'Missing required configuration "{name}" which has no default value.'
        )
    return _plugin(class_name, settings)


def _plugin(class_name: str, settings: Mapping[str, str]) -> PluginSettings:
    own = {name: text for name, text in settings.items() if name != "plugin.version"}
    return PluginSettings(class_name.strip(), own)
