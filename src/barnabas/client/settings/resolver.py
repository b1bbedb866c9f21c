"""From a dictionary of names to the fields of a client's settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from barnabas.client.errors import KafkaError, fail
from barnabas.client.settings import names, security, translation
from barnabas.client.settings.parser import is_secret, parse_value
from barnabas.config.client import librdkafka

log = logging.getLogger("barnabas.client")


def resolve(
    conf: Mapping[str, Any], own: names.Names, *, callbacks: Iterable[str]
) -> dict[str, Any]:
    """The fields that were told. Raises where a name or a value is wrong, or two contradict."""
    given: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for name, value in _flat(conf):
        if name in ("logger", "oauth_cb") or name in names.COMMON_CALLBACKS or name in callbacks:
            told[name] = _callback(name, value)
        elif name in librdkafka.DEDICATED:
            instead = librdkafka.DEDICATED[name]
            fail(KafkaError._INVALID_ARG, f'"{name}" is not a setting in Python: use {instead}')
        elif name in _TAKES_OBJECTS and not isinstance(value, str):
            given[name] = value
        elif name in _SERIALIZERS:
            _refuse_serializer(name, value)
        else:
            given[name] = parse_value(name, value)
    given = {name: value for name, value in given.items() if value is not None}
    meanings = {**names.CONNECTION, **own}
    told |= combine(given, meanings)
    if "compression" in own:
        _level_of_codec(given, told)
    told["security"] = security.resolve(given, combine(given, names.SECURITY), told)
    told.pop("oauth_cb", None)
    _tell_of_idle(given, meanings)
    return told


def combine(given: Mapping[str, Any], meanings: names.Names) -> dict[str, Any]:
    """One value for each field of which something was told."""
    told = {}
    for field, known in meanings.items():
        best = [
            name for name in known if name in given and not isinstance(name, names.FallbackName)
        ]
        best = best or [name for name in known if name in given]
        if best:
            values = [translation.translate(field, name, given[name]) for name in best]
            _refuse_contradiction(best, values)
            told[field] = values[0]
    return told


_TAKES_OBJECTS = frozenset(
    ("partitioner", "partitioner.class", "interceptor.classes", "interceptors")
)


_SERIALIZERS = frozenset(
    f"{field}.{kind}" for field in ("key", "value") for kind in ("serializer", "deserializer")
)
_SERIALIZERS_OF_BYTES = ("String", "ByteArray", "Bytes", "ByteBuffer")


def _refuse_serializer(name: str, value: Any) -> None:
    """Plain clients send and hand out bytes: Java files may say so, and nothing else."""
    kind = str(value).rpartition(".")[2].removesuffix("Deserializer").removesuffix("Serializer")
    if not isinstance(value, str) or kind not in _SERIALIZERS_OF_BYTES:
        fail(
            KafkaError._INVALID_ARG,
            f'"{name}" is for SerializingProducer and DeserializingConsumer, '
            f"which take callables such as those of barnabas.serialization",
        )


def _flat(conf: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All pairs; those of default.topic.config are as good as those beside it."""
    for name, value in conf.items():
        if name == "default.topic.config":
            if not isinstance(value, Mapping):
                raise TypeError("default.topic.config must be a dict of settings")
            yield from value.items()
        else:
            yield name, value


def _callback(name: str, value: Any) -> Callable[..., Any]:
    if name == "logger" or callable(value):
        return value  # type: ignore[no-any-return]
    if name in (*names.PRODUCER_CALLBACKS, *names.CONSUMER_CALLBACKS):
        fail(KafkaError._INVALID_ARG, f"{name} must be callable, not {type(value).__name__}")
    raise TypeError(f"{name} must be callable, not {type(value).__name__}")


def _refuse_contradiction(told_by: list[str], values: list[Any]) -> None:
    for name, value in zip(told_by[1:], values[1:], strict=True):
        if value != values[0]:
            what = "different values" if is_secret(name) else f"{values[0]!r} and {value!r}"
            fail(
                KafkaError._INVALID_ARG,
                f'"{told_by[0]}" and "{name}" are names of one setting but have {what}: keep one',
            )


def _level_of_codec(given: Mapping[str, Any], told: dict[str, Any]) -> None:
    name = names.CODEC_LEVELS.get(told.get("compression", "none"), "")
    if name in given and "compression_level" not in told:
        told["compression_level"] = translation.translate("compression_level", name, given[name])


def _tell_of_idle(given: Iterable[str], meanings: names.Names) -> None:
    """Say once what was set and changes nothing, to whoever looks for why."""
    if not log.isEnabledFor(logging.DEBUG):
        return
    used = {name for known in (*meanings.values(), *names.SECURITY.values()) for name in known}
    used.update(names.JAVA_STORES, names.OAUTH_TOKEN_SETTINGS, names.CODEC_LEVELS.values())
    reasons = {name: reason for reason, idle in names.NO_EFFECT.items() for name in idle}
    idle = [
        f"{name} ({reasons.get(name, 'it is for another kind of client')})"
        for name in given
        if name not in used
    ]
    if idle:
        log.debug("settings without effect: %s", "; ".join(idle))
