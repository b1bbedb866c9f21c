"""The records of `_schemas`, byte for byte as Confluent's registry writes them.

Keys are JSON objects that begin with their keytype; the order of fields matters, because the
topic is compacted by these bytes. A key with no value is a tombstone. Empty fields are left out.

SCHEMA (magic 1)    one version of a subject; a soft deletion is the same with deleted=true
CONFIG, MODE        of a subject, of a context (subject ":.name:"), or of all (no subject)
DELETE_SUBJECT      versions of a subject, up to one, are softly deleted
CLEAR_SUBJECT       whatever the caches hold of a subject is void
CONTEXT             a context that has been used
NOOP                whoever reads it has read all that came before it; may tell the highest ids
                    of schemas that are gone (Confluent's has no value, and reads none)
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from barnabas.registry.config import SubjectConfig
from barnabas.registry.definitions import SchemaDefinition, parse_json

TENANT = "default"


class RegistryMode(StrEnum):
    """What may be done with a subject."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        return self in (RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE)

    @property
    def accepts_ids(self) -> bool:
        """Whether who registers a schema says which id and version it has."""
        return self in (RegistryMode.IMPORT, RegistryMode.FORWARD)


@dataclass(slots=True, frozen=True)
class SchemaKey:
    subject: str
    version: int

    def __str__(self) -> str:
        return f"{{magic=1,keytype=SCHEMA,subject={self.subject},version={self.version}}}"


@dataclass(slots=True, frozen=True)
class ConfigKey:
    subject: str | None


@dataclass(slots=True, frozen=True)
class ModeKey:
    subject: str | None


@dataclass(slots=True, frozen=True)
class DeleteSubjectKey:
    subject: str


@dataclass(slots=True, frozen=True)
class ClearSubjectKey:
    subject: str


@dataclass(slots=True, frozen=True)
class ContextKey:
    context: str
    tenant: str = TENANT


@dataclass(slots=True, frozen=True)
class NoopKey:
    pass


RegistryKey = (
    SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey
)


@dataclass(slots=True, frozen=True)
class SchemaValue:
    """One version of a subject."""

    subject: str
    version: int
    id: int
    definition: SchemaDefinition
    deleted: bool = False
    md5: str | None = None  # of what was there before Confluent's registry encrypted parts of it
    timestamp_ms: int | None = None  # when it was appended: not written, but told by the log

    @property
    def key(self) -> SchemaKey:
        return SchemaKey(self.subject, self.version)

    def as_soft_deleted(self) -> "SchemaValue":
        return replace(self, deleted=True)


@dataclass(slots=True, frozen=True)
class ConfigValue:
    subject: str | None
    config: SubjectConfig


@dataclass(slots=True, frozen=True)
class ModeValue:
    subject: str | None
    mode: RegistryMode


@dataclass(slots=True, frozen=True)
class DeleteSubjectValue:
    subject: str
    version: int


@dataclass(slots=True, frozen=True)
class ClearSubjectValue:
    subject: str


@dataclass(slots=True, frozen=True)
class ContextValue:
    context: str
    tenant: str = TENANT


@dataclass(slots=True, frozen=True)
class HighestDeletedIds:
    """The highest id of a context, where no schema has it any more: it is not given again."""

    by_context: Mapping[str, int]


RegistryValue = (
    SchemaValue
    | ConfigValue
    | ModeValue
    | DeleteSubjectValue
    | ClearSubjectValue
    | ContextValue
    | HighestDeletedIds
)


@dataclass(slots=True, frozen=True)
class RegistryRecord:
    key: RegistryKey
    value: RegistryValue | None = None


def noop_record(spent_ids: Mapping[str, int]) -> RegistryRecord:
    return RegistryRecord(NoopKey(), HighestDeletedIds(spent_ids) if spent_ids else None)


class UnreadableRecordError(ValueError):
    """It is not of this format, or of a kind that is not known here."""


def encode_record(record: RegistryRecord) -> tuple[bytes, bytes | None]:
    """The bytes of the key and of the value."""
    value = None if record.value is None else _bytes(_value_fields(record.value))
    return _bytes(_key_fields(record.key)), value


def decode_record(
    key: bytes | None, value: bytes | None, timestamp_ms: int | None = None
) -> RegistryRecord:
    try:
        found = _read_key(parse_json(key or b"null"))
        if value is None:
            return RegistryRecord(found)
        return RegistryRecord(found, _read_value(found, parse_json(value), timestamp_ms))
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnreadableRecordError(f"{(key or b'')[:200]!r}: {reason}") from None


def _key_fields(key: RegistryKey) -> dict[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        case ConfigKey(subject):
            return _about("CONFIG", subject)
        case ModeKey(subject):
            return _about("MODE", subject)
        case DeleteSubjectKey(subject):
            return _about("DELETE_SUBJECT", subject)
        case ClearSubjectKey(subject):
            return _about("CLEAR_SUBJECT", subject)
        case ContextKey(context, tenant):
            return {"keytype": "CONTEXT", "tenant": tenant, "context": context, "magic": 0}
        case NoopKey():
            return {"keytype": "NOOP", "magic": 0}


def _about(keytype: str, subject: str | None) -> dict[str, Any]:
    named = {} if not subject else {"subject": subject}
    return {"keytype": keytype, **named, "magic": 0}


def _value_fields(value: RegistryValue) -> dict[str, Any]:
    match value:
        case SchemaValue():
            return _schema_fields(value)
        case ConfigValue(subject, config):
            return _named(subject) | config.to_json()
        case ModeValue(subject, mode):
            return _named(subject) | {"mode": mode.value}
        case DeleteSubjectValue(subject, version):
            return {"subject": subject, "version": version}
        case ClearSubjectValue(subject):
            return {"subject": subject}
        case ContextValue(context, tenant):
            return {"tenant": tenant, "context": context}
        case HighestDeletedIds(by_context):
            return {"maxIds": dict(sorted(by_context.items()))}


def _named(subject: str | None) -> dict[str, Any]:
    return {"subject": subject} if subject else {}


def _schema_fields(value: SchemaValue) -> dict[str, Any]:
    definition = value.definition
    fields: dict[str, Any] = {
        "subject": value.subject,
        "version": value.version,
        "id": value.id,
        "md5": value.md5,
        "schemaType": definition.schema_type,
        "references": [each.to_json() for each in definition.references],
        "metadata": definition.metadata and definition.metadata.to_json(),
        "ruleSet": definition.rule_set and definition.rule_set.to_json(),
        "schema": definition.schema,
    }
    # An object that says nothing is written, a missing one is not: Jackson's NON_EMPTY.
    kept = {name: it for name, it in fields.items() if it is not None and it != []}
    return {**kept, "deleted": value.deleted}


def _read_key(fields: Mapping[str, Any]) -> RegistryKey:
    keytype = fields["keytype"]
    match keytype:
        case "SCHEMA":
            if fields.get("magic", 1) not in (0, 1):
                raise ValueError(f"magic {fields['magic']} is not known")
            return SchemaKey(_name(fields), _number(fields, "version"))
        case "CONFIG":
            return ConfigKey(_scope(fields))
        case "MODE":
            return ModeKey(_scope(fields))
        case "DELETE_SUBJECT":
            return DeleteSubjectKey(_name(fields))
        case "CLEAR_SUBJECT":
            return ClearSubjectKey(_name(fields))
        case "CONTEXT":
            return ContextKey(_name(fields, "context"), fields.get("tenant", TENANT))
        case "NOOP":
            return NoopKey()
    raise ValueError(f"keytype {keytype} is not known")


def _read_value(
    key: RegistryKey, fields: Mapping[str, Any], timestamp_ms: int | None
) -> RegistryValue:
    match key:
        case SchemaKey(subject, version):
            return SchemaValue(
                subject,
                version,
                _number(fields, "id"),
                SchemaDefinition.from_json(fields),
                deleted=bool(fields.get("deleted", False)),
                md5=fields.get("md5"),
                timestamp_ms=timestamp_ms,
            )
        case ConfigKey(subject):
            return ConfigValue(subject, SubjectConfig.from_json(fields))
        case ModeKey(subject):
            return ModeValue(subject, RegistryMode(fields["mode"]))
        case DeleteSubjectKey(subject):
            return DeleteSubjectValue(subject, _number(fields, "version"))
        case ClearSubjectKey(subject):
            return ClearSubjectValue(subject)
        case ContextKey(context, tenant):
            return ContextValue(context, tenant)
        case NoopKey():
            ids: Mapping[str, Any] = fields["maxIds"]
            return HighestDeletedIds({context: _number(ids, context) for context in ids})


def _scope(fields: Mapping[str, Any]) -> str | None:
    """A subject or a context; all of them if none is named."""
    return None if fields.get("subject") is None else _name(fields)


def _name(fields: Mapping[str, Any], what: str = "subject") -> str:
    name = fields[what]
    if not isinstance(name, str):
        raise TypeError(f"{what}: a string is expected, not {name!r:.100}")
    return name


def _number(fields: Mapping[str, Any], name: str) -> int:
    number = fields[name]
    if not isinstance(number, int):
        raise TypeError(f"{name}: a whole number is expected, not {number!r:.100}")
    return number


def _bytes(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
