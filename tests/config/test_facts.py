"""The declarations equal the list of Kafka's settings in tests/facts/configs.txt."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.config.differences import DYNAMIC_ONLY_HERE

from barnabas.config import broker, client_metrics, group, topic
from barnabas.config.client import admin, consumer, producer
from barnabas.config.setting import REQUIRED, Setting, SettingType, to_text

FACTS = Path(__file__).parents[1] / "facts" / "configs.txt"

DECLARED = {
    "broker and controller (server.properties)": broker.SETTINGS,
    "topic": topic.SETTINGS,
    "group": group.SETTINGS,
    "producer": producer.SETTINGS,
    "consumer": consumer.SETTINGS,
    "admin": admin.SETTINGS,
    "client metrics (KIP-714)": client_metrics.SETTINGS,
}


def facts() -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {}
    for line in FACTS.read_text().splitlines():
        if line.startswith("# "):
            section = sections[line[2:]] = []
        elif line:
            section.append(line)
    return sections


@pytest.mark.parametrize("section", DECLARED)
def test_every_setting_is_declared_as_in_kafka(section: str) -> None:
    declared = [
        fact_line(setting)
        for name, setting in sorted(DECLARED[section].items())
        if not setting.internal and not name.startswith("barnabas.")
    ]
    assert declared == [plain(line) for line in facts()[section]]


@pytest.mark.parametrize("section", DECLARED)
def test_every_default_passes_its_own_check(section: str) -> None:
    for setting in DECLARED[section].values():
        if setting.default is REQUIRED or setting.type is SettingType.PASSWORD:
            continue
        if setting.default is not None:
            assert setting.parse(to_text(setting.default)) == setting.default


def test_synonyms_of_topic_and_group_settings_have_their_type() -> None:
    for setting in (*topic.SETTINGS.values(), *group.SETTINGS.values()):
        for synonym in setting.synonyms:
            numbers = {SettingType.INT, SettingType.LONG}
            own, other = setting.type, broker.SETTINGS[synonym].type
            assert own is other or {own, other} <= numbers


def fact_line(setting: Setting) -> str:
    allowed = f"valid:{setting.check.allowed}" if setting.check and setting.check.allowed else ""
    is_dynamic = setting.update and setting.name not in DYNAMIC_ONLY_HERE
    dynamic = f"dynamic:{setting.update}" if is_dynamic else ""
    parts = (setting.name, setting.type.name.lower(), f"={default_text(setting.default)}")
    return plain(" ".join(filter(None, (*parts, allowed, setting.importance, dynamic))))


def default_text(default: Any) -> str:
    if default is REQUIRED:
        return "(required)"
    if default is None:
        return "null"
    if default == "":
        return '""'
    if default == ("/tmp/kafka-logs",):
        return "[(tmp)"
    if isinstance(default, tuple):
        return f"[{', '.join(default)}]"
    return to_text(default) or ""


def plain(line: str) -> str:
    """Removes the variations of the facts: `class` before names, upper case."""
    line = re.sub(r"\bclass (?=org\.)", "", line)
    return line.replace("(case insensitive) ", "").lower()
