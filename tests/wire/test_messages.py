"""The declarations equal the facts: every message, version and field."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.wire import facts
from tests.wire.declared_messages import MESSAGES_BY_NAME
from tests.wire.facts import FactField, FactMessage

from barnabas.wire.apis import ApiKey, api, apis
from barnabas.wire.codec.layout import FieldLayout, Fixed, Sized, layout
from barnabas.wire.schema import Struct, VersionRange

FACTS = [
    message
    for file_name in (
        "api-messages.txt",
        "metadata-records.txt",
        "coordinator-records.txt",
        "storage-records.txt",
    )
    for message in facts.messages(file_name)
    if message.kind != "header"
]


def test_the_declared_messages_are_those_of_the_facts() -> None:
    assert sorted(MESSAGES_BY_NAME) == sorted(fact.name for fact in FACTS)


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_a_message_has_the_facts_key_and_versions(fact: FactMessage) -> None:
    message = MESSAGES_BY_NAME[fact.name]
    versions = VersionRange.parse(fact.versions)
    assert versions == message.VERSIONS
    assert (-1 if fact.key is None else fact.key) == message.API_KEY
    assert fact.listeners == message.LISTENERS
    assert fact.flexible == (
        "none" if message.FLEXIBLE_FROM is None else f"{message.FLEXIBLE_FROM}+"
    )
    if fact.latest_unstable:
        assert message.STABLE_VERSIONS.max == versions.max - 1
    else:
        assert versions == message.STABLE_VERSIONS


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_each_version_has_the_fields_of_the_facts(fact: FactMessage) -> None:
    message = MESSAGES_BY_NAME[fact.name]
    for version in message.VERSIONS:
        declared = declared_fields(message, version)
        assert declared == fact_fields(fact, fact.fields, version), f"version {version}"


@pytest.mark.parametrize("fact", FACTS, ids=lambda fact: fact.name)
def test_ignorable_fields_are_those_of_the_facts(fact: FactMessage) -> None:
    message = MESSAGES_BY_NAME[fact.name]
    for version in message.VERSIONS:
        assert declared_absences(message, version) == fact_absences(fact, fact.fields, version)


def test_every_supported_key_has_its_messages() -> None:
    spoken = {fact.key: fact.name for fact in FACTS if fact.kind == "request"}
    assert {it.key: it.request.__name__ for it in apis()} == spoken
    for it in apis():
        assert (it.name, it.response.__name__) == (spoken[it.key][:-7], f"{it.name}Response")
        assert it.versions == it.response.VERSIONS
        assert it.flexible_from == it.response.FLEXIBLE_FROM


def test_retired_keys_have_names_and_no_messages() -> None:
    retired = set(ApiKey) - {it.key for it in apis()}
    assert {key.name for key in retired} == {
        "LEADER_AND_ISR",
        "STOP_REPLICA",
        "UPDATE_METADATA",
        "CONTROLLED_SHUTDOWN",
    }
    assert api(ApiKey.PRODUCE).name == "Produce"


def test_declaring_compiles_nothing() -> None:
    """A broker imports most of these modules at start and uses few of them."""
    program = (
        "import sys; from tests.wire.declared_messages import MESSAGES; "
        "assert len(MESSAGES) > 200; assert 'barnabas.wire.codec' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


@dataclass(slots=True)
class Carried:
    """A field in one version, in the format of the facts."""

    name: str
    type: str
    nullable: bool
    tag: int | None
    default: Any
    inner: "list[Carried]"


def declared_fields(struct: type[Struct], version: int) -> list[Carried]:
    return [
        Carried(
            name=field.name,
            type=type_name(field),
            nullable=field.is_nullable(version),
            tag=field.tag,
            default=declared_default(field),
            inner=declared_fields(field.scalar, version) if isinstance(field.scalar, type) else [],
        )
        for field in layout(struct)
        if version in field.versions
    ]


def fact_fields(fact: FactMessage, fields: list[FactField], version: int) -> list[Carried]:
    return [
        Carried(
            name=snake_case(field.name),
            type=fact_type(field),
            nullable=bool(field.nullable) and version in VersionRange.parse(field.nullable),
            tag=field.tag,
            default=fact_default(field, fact),
            inner=fact_fields(fact, fact.structs.get(element(field), []), version),
        )
        for field in fields
        if version in VersionRange.parse(field.versions)
    ]


def declared_absences(struct: type[Struct], version: int) -> set[tuple[str, bool]]:
    """Returns the fields that a version does not have, and if they are ignorable."""
    absent = set()
    for field in layout(struct):
        if version not in field.versions:
            absent.add((f"{field.name}", field.ignorable))
        elif isinstance(field.scalar, type):
            inner = declared_absences(field.scalar, version)
            absent |= {(f"{field.name}.{name}", ignorable) for name, ignorable in inner}
    return absent


def fact_absences(
    fact: FactMessage,
    fields: list[FactField],
    version: int,
    reach: VersionRange | None = None,
) -> set[tuple[str, bool]]:
    reach = reach or VersionRange.parse(fact.versions)
    absent = set()
    for field in fields:
        versions = VersionRange.parse(field.versions)
        reached = VersionRange(max(versions.min, reach.min), min(versions.max, reach.max))
        name = snake_case(field.name)
        if reached.min > reached.max:
            continue
        if version not in versions:
            absent.add((name, field.ignorable))
        elif element(field) in fact.structs:
            inner = fact_absences(fact, fact.structs[element(field)], version, reached)
            absent |= {(f"{name}.{path}", ignorable) for path, ignorable in inner}
    return absent


def element(field: FactField) -> str:
    return field.type.removeprefix("[]")


def fact_type(field: FactField) -> str:
    array = "[]" if field.type.startswith("[]") else ""
    return array + without_prefix(element(field))


def without_prefix(struct_name: str) -> str:
    """Prefixes of different structs with the same name in one module."""
    of_an_api = "Vote|Begin|End|QuorumEpoch|Incremental|Initialize|ReadSummary|Read|Write|Delete"
    of_an_api += "|Fetch|Acknowledge|Described|Listed"
    of_a_part = "Request|Response|LeaderChange|QuorumState|Target|Current"
    return re.sub(f"^(({of_an_api})(?=[A-Z]))?(({of_a_part})(?=[A-Z]))?", "", struct_name)


TYPE_NAMES = {
    "?": "bool",
    "b": "int8",
    "h": "int16",
    "H": "uint16",
    "i": "int32",
    "I": "uint32",
    "q": "int64",
    "d": "float64",
    "16s": "uuid",
}


def type_name(field: FieldLayout) -> str:
    array = "[]" if field.is_array else ""
    if isinstance(field.scalar, Fixed):
        return array + TYPE_NAMES[field.scalar.code]
    if isinstance(field.scalar, Sized):
        name = "records" if field.scalar.is_records else "bytes"
        return array + ("string" if field.scalar.is_text else name)
    return array + without_prefix(field.scalar.__name__)


def declared_default(field: FieldLayout) -> Any:
    if field.defaults_to_empty or field.defaults_to_struct:
        return "empty"
    return field.default


def fact_default(field: FactField, fact: FactMessage) -> Any:
    kind = element(field)
    if field.default == "null":
        return None
    if field.type.startswith("[]") or kind in fact.structs:
        return "empty"
    if kind == "records":
        ever_null = field.nullable and (
            VersionRange.parse(field.nullable).max >= VersionRange.parse(fact.versions).min
        )
        return None if ever_null else b""
    if kind == "string":
        return field.default or ""
    if kind == "bytes":
        return b""
    if kind == "uuid":
        return bytes(16)
    if kind == "bool":
        return field.default == "true"
    if kind == "float64":
        return 0.0
    return int(field.default or "0", 0)


def snake_case(name: str) -> str:
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return spaced.lower()
