"""What a connector changes of the settings of its clients, such as `producer.override.acks`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from barnabas.client.errors import KafkaException, error_in
from barnabas.client.settings.parser import declarations, is_secret, parse_value
from barnabas.config.client import admin, consumer, producer
from barnabas.config.errors import InvalidConfig
from barnabas.config.setting import REQUIRED as NO_DEFAULT
from barnabas.config.setting import Setting as ClientSetting
from barnabas.connect.common_settings import TOPIC_CREATION_PREFIX, OrderedSetting
from barnabas.connect.config_def import (
    HIDDEN,
    REQUIRED,
    ConfigType,
    ConfigValueInfo,
    ConnectorSetting,
    Importance,
)
from barnabas.connect.validated_config import ValidatedSetting

_PRODUCER, _CONSUMER, _ADMIN = "producer.override.", "consumer.override.", "admin.override."
_SETTINGS: Final[Mapping[str, Mapping[str, ClientSetting]]] = {
    _PRODUCER: producer.SETTINGS,
    _CONSUMER: consumer.SETTINGS,
    _ADMIN: admin.SETTINGS,
}
_PRINCIPAL_SETTINGS: Final = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
_POLICY: Final = "connector.client.config.override.policy"
_ALLOWLIST: Final = "connector.client.config.override.allowlist"


def client_overrides(
    config: Mapping[str, str | None], worker: Mapping[str, str], *, is_sink: bool
) -> list[ValidatedSetting]:
    """Returns the overrides of clients that the connector uses, and those that are not allowed.

    One is wrong if its value is, or if the policy of the worker does not allow it. The policy is
    for all clients, because the framework has some that a connector of Kafka has not.
    """
    policy = worker.get(_POLICY, "All").strip()
    policy = policy.rpartition(".")[2].removesuffix("ConnectorClientConfigOverridePolicy")
    allowed = _allowed(policy, worker)
    result = []
    used = _used_clients(config, is_sink=is_sink)
    for prefix in _SETTINGS:
        for name, text in config.items():
            override = name.removeprefix(prefix)
            is_allowed = allowed is None or override in allowed
            if override == name or (is_allowed and prefix not in used):
                continue
            declared = _SETTINGS[prefix].get(override)
            value = ConfigValueInfo(name, HIDDEN if is_secret(override) else text)
            value.errors += _errors(override, text, declared)
            if not is_allowed:
                value.errors.append(
                    f"The '{policy}' policy does not allow '{override}' to be overridden in the "
                    "connector configuration."
                )
            result.append(ValidatedSetting(_definition(name, declared), value))
    return result


def _allowed(policy: str, worker: Mapping[str, str]) -> Sequence[str] | None:
    """Returns the names that may be overridden; None for all."""
    match policy:
        case "None":
            return ()
        case "Principal":
            return _PRINCIPAL_SETTINGS
        case "Allowlist":
            return [name.strip() for name in worker.get(_ALLOWLIST, "").split(",")]
        case _:
            return None


def _used_clients(config: Mapping[str, str | None], *, is_sink: bool) -> list[str]:
    has_dead_letters = bool((config.get("errors.deadletterqueue.topic.name") or "").strip())
    creates_topics = any(name.startswith(TOPIC_CREATION_PREFIX) for name in config)
    used = {
        _PRODUCER: not is_sink or has_dead_letters,
        _CONSUMER: is_sink,
        _ADMIN: has_dead_letters or (creates_topics and not is_sink),
    }
    return [prefix for prefix, is_used in used.items() if is_used]


def _errors(name: str, text: str | None, declared: ClientSetting | None) -> list[str]:
    """Returns what is wrong. Names that no client has are allowed, as in Kafka."""
    if text is None or not declarations(name):
        return []
    try:
        parse_value(name, text)
    except KafkaException as error:
        try:
            if declared is not None:
                declared.parse(text)
        except InvalidConfig as invalid:
            return [str(invalid)]
        return [error_in(error).str()]
    return []


def _definition(name: str, declared: ClientSetting | None) -> OrderedSetting | None:
    if declared is None:
        return None
    default: Any = declared.default
    setting = ConnectorSetting(
        name,
        ConfigType(declared.type.name),
        REQUIRED if default is NO_DEFAULT else default,
        importance=Importance(declared.importance.upper()),
        display_name=declared.name,
    )
    return OrderedSetting(setting)
