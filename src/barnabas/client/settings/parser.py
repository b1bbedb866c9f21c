"""Parses one setting by its declarations in librdkafka and Java.

A value that either of them accepts is accepted. Values may have Python's types, or be text as in a
properties file.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.errors import KafkaError, KafkaException
from barnabas.config.client import admin, consumer, librdkafka, producer
from barnabas.config.errors import InvalidConfig
from barnabas.config.setting import BOOLEAN, HIDDEN, PASSWORD, Secret, Setting, SettingType


def parse_value(name: str, value: Any) -> Any:
    """Returns the typed value; None means the default of the setting."""
    declared = declarations(name)
    if not declared:
        raise unknown_name(name)
    text = _text_of(value)
    text = _JAVA_VALUES.get((name, text), text)
    for setting in declared:
        try:
            parsed = setting.parse(_boolean_text(text) if setting.type is BOOLEAN else text)
        except InvalidConfig:
            continue
        return parsed.reveal() if isinstance(parsed, Secret) else parsed
    raise wrong_value(name, value, " or ".join(dict.fromkeys(map(_allowed, declared))))


@functools.cache
def declarations(name: str) -> tuple[Setting, ...]:
    """Returns the declarations of a name in librdkafka and Java; empty if there is none.

    If Java declares no allowed values, librdkafka's range is the only one.
    """
    rdkafka = librdkafka.SETTINGS.get(name)
    java = JAVA.get(name)
    if rdkafka is None or java is None:
        return tuple(setting for setting in (rdkafka, java) if setting is not None)
    return (rdkafka, java) if java.check is not None else (rdkafka,)


JAVA: Mapping[str, Setting] = {**admin.SETTINGS, **consumer.SETTINGS, **producer.SETTINGS}


_JAVA_VALUES: Mapping[tuple[str, str | None], str | None] = {
    ("connections.max.idle.ms", "-1"): "0",
    ("ssl.endpoint.identification.algorithm", ""): "none",
}
"""Java's values that have another name in librdkafka."""


def is_secret(name: str) -> bool:
    return any(setting.type is PASSWORD for setting in declarations(name))


def wrong_value(name: str, value: Any, allowed: str) -> KafkaException:
    shown = HIDDEN if is_secret(name) else f'"{_text_of(value)}"'
    reason = f'Invalid value {shown} for configuration property "{name}": expected {allowed}'
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason))


def unknown_name(name: str) -> KafkaException:
    from barnabas.client.settings import names
    from barnabas.config.unknown_names import SETTING_CUTOFF, find_similar

    candidates = {*librdkafka.SETTINGS, *JAVA, *names.COMMON_CALLBACKS, *names.PRODUCER_CALLBACKS}
    candidates |= {*names.CONSUMER_CALLBACKS, "oauth_cb", "logger"}
    candidates.discard(name)  # a callback of another kind of client
    similar = find_similar(str(name), candidates, cutoff=SETTING_CUTOFF)
    hint = f'; did you mean "{similar}"?' if similar is not None else ""
    reason = f'No such configuration property: "{name}"{hint}'
    return KafkaException(KafkaError(KafkaError._INVALID_ARG, reason))


def _text_of(value: Any) -> str | None:
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case bytes():
            return value.decode()
        case Secret():
            return value.reveal()
        case Mapping():
            return str(value)
        case Iterable():
            return ",".join(_text_of(element) or "" for element in value)
        case _:
            return str(value)


def _boolean_text(text: str | None) -> str | None:
    return _BOOLEANS.get(text.strip().lower(), text) if text is not None else None


_BOOLEANS = {"t": "true", "1": "true", "f": "false", "0": "false"}


def _allowed(setting: Setting) -> str:
    allowed = setting.check.allowed.removeprefix("(case insensitive) ") if setting.check else ""
    return f"{_TYPE_TEXTS[setting.type]} {allowed}".strip()


_TYPE_TEXTS = {
    SettingType.BOOLEAN: "true or false",
    SettingType.STRING: "one of",
    SettingType.INT: "an integer",
    SettingType.SHORT: "an integer",
    SettingType.LONG: "an integer",
    SettingType.DOUBLE: "a number",
    SettingType.LIST: "a list of",
    SettingType.CLASS: "a class",
    SettingType.PASSWORD: "text",
}
