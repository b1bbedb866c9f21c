"""Validation of the dynamic settings of a resource, for AlterConfigs and CreateTopics.

Each function takes all dynamic settings of the resource as they are after the change, and raises
InvalidConfig, or InvalidConfigRequest where Kafka responds INVALID_REQUEST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.errors import ConfigError, InvalidConfig, InvalidConfigRequest
from barnabas.config.providers import resolve_references, without_resolved
from barnabas.config.setting import PER_BROKER, READ_ONLY, Setting, inherited_value
from barnabas.config.settings import BrokerSettings


def validate_topic(
    configs: Mapping[str, str | None],
    defaults: Mapping[str, Any] | None = None,
    *,
    tiered_storage: bool = False,
) -> None:
    """Checks the settings of a topic; `defaults` are the broker's typed values for all topics."""
    own = _parse_all(configs, topic.SETTINGS, "topic")
    values = {**(defaults or _TOPIC_DEFAULTS), **own}
    min_lag_ms, max_lag_ms = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    if min_lag_ms > max_lag_ms:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({min_lag_ms}) > "
            f"max.compaction.lag.ms ({max_lag_ms})"
        )
    if values["remote.storage.enable"]:
        _validate_tiered_topic(values, tiered_storage)


def validate_broker(
    configs: Mapping[str, str | None],
    *,
    broker_id: int | None,
    settings: BrokerSettings | None = None,
    cluster_configs: Mapping[str, str] = MappingProxyType({}),
    current: Mapping[str, Any] | None = None,
) -> None:
    """Checks the dynamic settings of a broker, or the cluster-wide ones if `broker_id` is None.

    With `settings`, those of the broker's file, also checks that a broker can run with the file's
    settings, then `cluster_configs`, then `configs` in effect. `current` are the typed values from
    before the change, by default those of the file.
    Unknown names are valid, as in Kafka, because plug-ins may read them.
    """
    texts = {name: text for name, text in configs.items() if text is not None}
    if nulls := configs.keys() - texts.keys():
        raise InvalidConfigRequest(f"Null value not supported for : {','.join(sorted(nulls))}")
    _reject(texts, _is_static, "Cannot update these configs dynamically")
    _reject(
        texts,
        _needs_listener_prefix,
        "These security configs can be dynamically updated only per-listener "
        "using the listener prefix",
    )
    if broker_id is None:
        _reject(
            texts,
            _is_per_broker,
            "Cannot update these configs at default cluster level, broker id must be specified",
        )
    try:
        _parse_resolved(texts, settings)
        if settings is not None:
            dynamic, _ = resolve_references({**cluster_configs, **texts}, settings.explicit)
            effective = {**settings.explicit, **dynamic}
            changed = BrokerSettings.from_properties(effective)
            _validate_local_retention(changed)
            _validate_thread_counts(changed, settings if current is None else current)
    except ConfigError as error:
        raise InvalidConfigRequest(error.problems[0]) from None
    except InvalidConfig as error:
        raise InvalidConfigRequest(str(error)) from None


def _parse_resolved(texts: Mapping[str, str], settings: BrokerSettings | None) -> None:
    """Raises InvalidConfig if a value, or one that it refers to, is not allowed."""
    resolved, problems = resolve_references(texts, settings.explicit if settings else {})
    if problems:
        raise InvalidConfig(problems[0])
    for name, text in resolved.items():
        if setting := broker.find(name):
            try:
                setting.parse(text)
            except InvalidConfig as problem:
                raise without_resolved(problem, setting, text, texts[name]) from None


def validate_group(
    configs: Mapping[str, str | None], settings: BrokerSettings | None = None
) -> None:
    """Checks the settings of a group against the broker's bounds for all groups."""
    own = _parse_all(configs, group.SETTINGS, "group")

    def broker_value(name: str) -> Any:
        return settings[name] if settings is not None else broker.SETTINGS[name].default

    for name in own:
        for low, high in _group_bounds(name):
            if low in broker.SETTINGS and own[name] < broker_value(low):
                raise InvalidConfig(f"{name} must be greater than or equal to {low}")
            if high in broker.SETTINGS and own[name] > broker_value(high):
                raise InvalidConfig(f"{name} must be less than or equal to {high}")
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
        heartbeat_ms = own.get(heartbeat, broker_value(f"group.{heartbeat}"))
        session_ms = own.get(session, broker_value(f"group.{session}"))
        if heartbeat_ms >= session_ms:
            raise InvalidConfig(f"{heartbeat} must be less than {session}")


def validate_client_metrics(configs: Mapping[str, str | None]) -> None:
    """Checks a client metrics subscription: its names, its interval and its client patterns."""
    for name in configs:
        if name not in client_metrics.SETTINGS:
            from barnabas.config.unknown_names import suggestion

            similar = suggestion(name, client_metrics.SETTINGS)
            raise InvalidConfigRequest(f"Unknown client metrics configuration: {name}{similar}")
    values = _parse_all(configs, client_metrics.SETTINGS, "client metrics")
    interval_ms = values.get("interval.ms", client_metrics.SHORTEST_INTERVAL_MS)
    if not (
        client_metrics.SHORTEST_INTERVAL_MS <= interval_ms <= client_metrics.LONGEST_INTERVAL_MS
    ):
        raise InvalidConfigRequest(
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{client_metrics.SHORTEST_INTERVAL_MS} and {client_metrics.LONGEST_INTERVAL_MS} "
            f"(1 hour)"
        )
    for pattern in values.get("match", ()):
        if not client_metrics.is_client_pattern(pattern):
            raise InvalidConfig(f"Illegal client matching pattern: {pattern}")


_THREAD_COUNTS = (
    "background.threads",
    "log.cleaner.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
)

_TOPIC_DEFAULTS = {name: setting.default for name, setting in topic.SETTINGS.items()}


def _parse_all(
    configs: Mapping[str, str | None], settings: Mapping[str, Setting], kind: str
) -> dict[str, Any]:
    values = {}
    for name, text in configs.items():
        if name not in settings:
            from barnabas.config.unknown_names import suggestion

            raise InvalidConfig(f"Unknown {kind} config name: {name}{suggestion(name, settings)}")
        if text is None:
            raise InvalidConfig(f"Null value not supported for {kind} configs: {name}")
        values[name] = settings[name].parse(text)
    return values


def _validate_tiered_topic(values: Mapping[str, Any], tiered_storage: bool) -> None:
    if not tiered_storage:
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage."
        )
    if "compact" in values["cleanup.policy"]:
        raise InvalidConfig("remote.storage.enable needs a cleanup.policy without compact")
    for unit in ("ms", "bytes"):
        total, local = values[f"retention.{unit}"], values[f"local.retention.{unit}"]
        if values["remote.log.copy.disable"] and local not in (-2, total):
            raise InvalidConfig(
                f"With remote.log.copy.disable, local.retention.{unit} ({local}) must be the same "
                f"as retention.{unit} ({total}): nothing is copied to the remote store any more"
            )
        _validate_local(f"local.retention.{unit}", local, f"retention.{unit}", total)


def _validate_local_retention(settings: BrokerSettings) -> None:
    for unit in ("ms", "bytes"):
        total = inherited_value(topic.SETTINGS[f"retention.{unit}"], settings)
        local_name, total_name = f"log.local.retention.{unit}", f"log.retention.{unit}"
        _validate_local(local_name, settings[local_name], total_name, total)


def _validate_thread_counts(changed: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """One change can at most halve or double the number of threads, as in Kafka."""
    for name in _THREAD_COUNTS:
        threads, before = changed[name], current[name]
        problem = ""
        if threads < before // 2:
            problem = f"value should be at least half the current value {before}"
        elif threads > before * 2:
            problem = f"value should not be greater than double the current value {before}"
        if problem:
            raise InvalidConfig(
                f"Dynamic thread count update validation failed for {name}={threads}, {problem}"
            )


def _validate_local(local_name: str, local: int, total_name: str, total: int) -> None:
    """Local retention cannot exceed retention; -2 is the same as retention, -1 is unlimited."""
    if total == -1 or local == -2:
        return
    if local == -1 or local > total:
        raise InvalidConfig(
            f"Invalid value {local} for configuration {local_name}: "
            f"Value must not be more than {total_name} ({total})"
        )


def _reject(texts: Mapping[str, str], is_invalid: Callable[[str], bool], reason: str) -> None:
    if invalid := list(filter(is_invalid, texts)):
        raise InvalidConfigRequest(f"{reason}: [{', '.join(invalid)}]")


def _is_static(name: str) -> bool:
    setting = broker.SETTINGS.get(name)
    return setting is not None and setting.update == READ_ONLY


def _needs_listener_prefix(name: str) -> bool:
    return name in broker.PER_LISTENER_ONLY


def _is_per_broker(name: str) -> bool:
    setting = broker.find(name)
    return setting is not None and setting.update == PER_BROKER


def _group_bounds(name: str) -> Iterator[tuple[str, str]]:
    """Yields the names of the broker's minimum and maximum for a setting of a group."""
    kind, _, rest = name.partition(".")
    yield f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
