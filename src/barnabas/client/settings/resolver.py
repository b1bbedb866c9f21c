"""Resolves a dictionary of setting names into the fields of a client's settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import names, security, translation
from barnabas.client.settings.parser import is_secret, parse_value
from barnabas.config.client import librdkafka

log = logging.getLogger("barnabas.client")


def resolve(
    conf: Mapping[str, Any],
    own: names.Names,
    *,
    callbacks: Iterable[str],
    others: names.Names = MappingProxyType({}),
) -> dict[str, Any]:
    """Returns the fields that are set. Raises if a name or value is wrong, or two contradict.

    Settings of `others`, another kind of client, are logged.
    """
    values: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for name, value in _flat(conf):
        if name in ("logger", "oauth_cb") or name in names.COMMON_CALLBACKS or name in callbacks:
            fields[name] = _callback(name, value)
        elif name in librdkafka.DEDICATED:
            instead = librdkafka.DEDICATED[name]
            fail(KafkaError._INVALID_ARG, f'"{name}" is not a setting in Python: use {instead}')
        elif name in _TAKES_OBJECTS and not isinstance(value, str):
            values[name] = value
        elif name in _SERIALIZERS:
            _reject_serializer(name, value)
        else:
            values[name] = parse_value(name, value)
    values = {name: value for name, value in values.items() if value is not None}
    field_names = {**names.CONNECTION, **own}
    fields |= combine(values, field_names)
    if "compression" in own:
        _level_of_codec(values, fields)
    fields["security"] = security.resolve(values, combine(values, names.SECURITY), fields)
    fields.pop("oauth_cb", None)
    _log_others(values, field_names, others, fields.get("logger") or log)
    _log_unused(values, field_names)
    return fields


def combine(values: Mapping[str, Any], field_names: names.Names) -> dict[str, Any]:
    """Returns one value for each field that is set."""
    fields = {}
    for field, aliases in field_names.items():
        set_names = [
            name for name in aliases if name in values and not isinstance(name, names.FallbackName)
        ]
        set_names = set_names or [name for name in aliases if name in values]
        if set_names:
            translated = [translation.translate(field, name, values[name]) for name in set_names]
            _reject_contradiction(set_names, translated)
            fields[field] = translated[0]
    return fields


_TAKES_OBJECTS = frozenset(
    ("partitioner", "partitioner.class", "interceptor.classes", "interceptors")
)


_SERIALIZERS = frozenset(
    f"{field}.{kind}" for field in ("key", "value") for kind in ("serializer", "deserializer")
)
_SERIALIZERS_OF_BYTES = ("String", "ByteArray", "Bytes", "ByteBuffer")


def _reject_serializer(name: str, value: Any) -> None:
    """Plain clients have bytes: a Java file may name serializers of bytes only."""
    kind = str(value).rpartition(".")[2].removesuffix("Deserializer").removesuffix("Serializer")
    if not isinstance(value, str) or kind not in _SERIALIZERS_OF_BYTES:
        fail(
            KafkaError._INVALID_ARG,
            f'"{name}" is for SerializingProducer and DeserializingConsumer, '
            f"which take callables such as those of barnabas.serialization",
        )


def _flat(conf: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields all settings; those of default.topic.config are like the others."""
    for name, value in conf.items():
        if name == "default.topic.config":
            if not isinstance(value, Mapping):
                raise TypeError("default.topic.config must be a dict of settings")
            yield from value.items()
        else:
            yield name, value


def _callback(name: str, value: Any) -> Callable[..., Any]:
    if name == "logger" or callable(value):
        callback: Callable[..., Any] = value
        return callback
    if name in (*names.PRODUCER_CALLBACKS, *names.CONSUMER_CALLBACKS):
        fail(KafkaError._INVALID_ARG, f"{name} must be callable, not {type(value).__name__}")
    raise TypeError(f"{name} must be callable, not {type(value).__name__}")


def _reject_contradiction(set_by: list[str], values: list[Any]) -> None:
    for name, value in zip(set_by[1:], values[1:], strict=True):
        if value != values[0]:
            what = "different values" if is_secret(name) else f"{values[0]!r} and {value!r}"
            fail(
                KafkaError._INVALID_ARG,
                f'"{set_by[0]}" and "{name}" are names of one setting but have {what}: keep one',
            )


def _level_of_codec(values: Mapping[str, Any], fields: dict[str, Any]) -> None:
    name = names.CODEC_LEVELS.get(fields.get("compression", "none"), "")
    if name in values and "compression_level" not in fields:
        fields["compression_level"] = translation.translate("compression_level", name, values[name])


def _log_others(
    values: Iterable[str], field_names: names.Names, others: names.Names, logger: logging.Logger
) -> None:
    """Logs the settings of a consumer that were given to a producer, or the reverse."""
    usable = {name for aliases in field_names.values() for name in aliases}
    theirs = {name for aliases in others.values() for name in aliases} - usable
    if ignored := [name for name in values if name in theirs]:
        logger.warning("Settings of another kind of client, without effect: %s", ", ".join(ignored))


def _log_unused(values: Iterable[str], field_names: names.Names) -> None:
    """Logs the settings without effect, at debug level."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    used = {
        name for aliases in (*field_names.values(), *names.SECURITY.values()) for name in aliases
    }
    used.update(names.JAVA_STORES, names.OAUTH_TOKEN_SETTINGS, names.CODEC_LEVELS.values())
    reasons = {name: reason for reason, idle in names.NO_EFFECT.items() for name in idle}
    idle = [
        f"{name} ({reasons.get(name, 'it is for another kind of client')})"
        for name in values
        if name not in used
    ]
    if idle:
        log.debug("Settings without effect: %s", "; ".join(idle))
