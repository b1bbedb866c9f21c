"""The tables of names are complete: every name of Java and librdkafka is in one of them."""

import dataclasses
import re

import pytest
from tests.client.librdkafka import Property, properties

from barnabas.client.settings import AdminSettings, ConsumerSettings, ProducerSettings, names
from barnabas.client.settings.parser import JAVA
from barnabas.config.client import librdkafka
from barnabas.config.setting import Setting, SettingType, to_text

DEDICATED = "see dedicated API"
SETTABLE = [row for row in properties() if row.kind != DEDICATED]
TYPES = {
    "integer": {SettingType.INT},
    "float": {SettingType.DOUBLE},
    "boolean": {SettingType.BOOLEAN},
    "string": {SettingType.STRING, SettingType.PASSWORD, SettingType.LIST},
    "enum value": {SettingType.STRING},
    "CSV flags": {SettingType.LIST},
    "pattern list": {SettingType.STRING},
}
# Set twice by librdkafka, for all topics and for one; the first of them is what a client takes.
ONCE = {row.name: row for row in reversed(SETTABLE)}


def test_the_declared_settings_are_those_of_librdkafka() -> None:
    assert set(librdkafka.SETTINGS) == set(ONCE)


@pytest.mark.parametrize("row", ONCE.values(), ids=lambda row: row.name)
def test_every_setting_is_declared_as_in_librdkafka(row: Property) -> None:
    declared = librdkafka.SETTINGS[row.name]
    assert declared.type in TYPES[row.kind]
    if row.kind == "CSV flags":
        return
    if not row.alias_of:
        assert default_text(declared) == row.default
    if row.kind in ("integer", "float"):
        assert bounds(declared) == [float(bound) for bound in row.allowed.split(" .. ")]
    if row.kind == "enum value":
        assert set(words(declared)) == {word.strip() for word in row.allowed.split(",")}


def test_aliases_are_librdkafkas() -> None:
    aliases = {row.name: row.alias_of for row in SETTABLE if row.alias_of}
    # The global setting of this name is one of its own; that of topics is deprecated.
    del aliases["enable.auto.commit"]
    assert aliases == librdkafka.ALIASES


def test_settings_that_are_functions_in_c_are_not_settings() -> None:
    dedicated = {row.name for row in properties() if row.kind == DEDICATED}
    assert set(librdkafka.DEDICATED) <= dedicated
    assert not dedicated & set(librdkafka.SETTINGS)


def test_every_name_of_java_and_librdkafka_is_in_a_table() -> None:
    placed = {name for table in TABLES for known in table.values() for name in known}
    placed |= {*names.JAVA_STORES, *names.OAUTH_TOKEN_SETTINGS, *names.CODEC_LEVELS.values()}
    assert placed == {*librdkafka.SETTINGS, *JAVA, "interceptors"}


def test_a_name_with_an_effect_is_not_listed_as_without() -> None:
    idle = {name for known in names.NO_EFFECT.values() for name in known}
    used = {name for table in TABLES[:-1] for known in table.values() for name in known}
    assert not idle & (
        used | {*names.JAVA_STORES, *names.OAUTH_TOKEN_SETTINGS, *names.CODEC_LEVELS.values()}
    )


@pytest.mark.parametrize(
    ("resolved", "own"),
    [
        (ProducerSettings, names.PRODUCER),
        (ConsumerSettings, names.CONSUMER),
        (AdminSettings, names.ADMIN),
    ],
)
def test_every_field_has_a_name(resolved: type, own: names.Names) -> None:
    fields = {field.name for field in dataclasses.fields(resolved)}
    callbacks = {
        *names.COMMON_CALLBACKS,
        *names.PRODUCER_CALLBACKS,
        *names.CONSUMER_CALLBACKS,
        "logger",
        "security",
    }
    assert fields - callbacks == {*names.CONNECTION, *own}


TABLES = (
    names.CONNECTION,
    names.PRODUCER,
    names.CONSUMER,
    names.ADMIN,
    names.SECURITY,
    names.NO_EFFECT,
)


def default_text(setting: Setting) -> str:
    text = to_text(setting.default) or ""
    return text.removesuffix(".0") if setting.type is SettingType.DOUBLE else text


def bounds(setting: Setting) -> list[float]:
    assert setting.check is not None
    return [float(number) for number in re.findall(r"-?\d+", setting.check.allowed)]


def words(setting: Setting) -> list[str]:
    assert setting.check is not None
    return setting.check.allowed.partition("[")[2].rstrip("]").split(", ")
