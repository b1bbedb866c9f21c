"""The records of `_schemas`, byte for byte as Confluent's registry writes them.

Keys are JSON objects that begin with their keytype. The order of fields matters, because the
topic is compacted by these bytes. A key without a value is a tombstone. Empty fields are omitted.

SCHEMA (magic 1)    one version of a subject; a soft deletion is the same with deleted=true
CONFIG, MODE        of a subject, of a context (subject ":.name:"), or global (no subject)
DELETE_SUBJECT      soft-deletes the versions of a subject, up to one
CLEAR_SUBJECT       invalidates caches of a subject
CONTEXT             a context with schemas
NOOP                marks a position in the log; may have the highest ids of deleted schemas
                    (Confluent's registry writes no value, and ignores one)
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
    """Which operations are allowed on a subject."""

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
        """Whether requests choose the id and version of a schema."""
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
    md5: str | None = None  # of the text before Confluent's registry encrypted parts of it
    timestamp_ms: int | None = None  # the timestamp of the record, not a field of it

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
    """The highest id of each context whose schema was deleted, so that no schema gets it again."""

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


def noop_record(highest_deleted_ids: Mapping[str, int]) -> RegistryRecord:
    deleted = HighestDeletedIds(highest_deleted_ids) if highest_deleted_ids else None
    return RegistryRecord(NoopKey(), deleted)


class UnreadableRecordError(ValueError):
    """The record has another format, or an unknown keytype."""


def encode_record(record: RegistryRecord) -> tuple[bytes, bytes | None]:
    """Returns the bytes of the key and of the value."""
    value = None if record.value is None else _bytes(_value_fields(record.value))
    return _bytes(_key_fields(record.key)), value


def decode_record(
    key: bytes | None, value: bytes | None, timestamp_ms: int | None = None
) -> RegistryRecord:
    try:
        decoded_key = _read_key(parse_json(key or b"null"))
        if value is None:
            return RegistryRecord(decoded_key)
        return RegistryRecord(
            decoded_key, _read_value(decoded_key, parse_json(value), timestamp_ms)
        )
    except (ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnreadableRecordError(f"{(key or b'')[:200]!r}: {reason}") from None


def _key_fields(key: RegistryKey) -> dict[str, Any]:
    match key:
        case SchemaKey(subject, version):
            return {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
        case ConfigKey(subject):
            return _scope_key_fields("CONFIG", subject)
        case ModeKey(subject):
            return _scope_key_fields("MODE", subject)
        case DeleteSubjectKey(subject):
            return _scope_key_fields("DELETE_SUBJECT", subject)
        case ClearSubjectKey(subject):
            return _scope_key_fields("CLEAR_SUBJECT", subject)
        case ContextKey(context, tenant):
            return {"keytype": "CONTEXT", "tenant": tenant, "context": context, "magic": 0}
        case NoopKey():
            return {"keytype": "NOOP", "magic": 0}


def _scope_key_fields(keytype: str, subject: str | None) -> dict[str, Any]:
    return {"keytype": keytype, **_subject_field(subject), "magic": 0}


def _value_fields(value: RegistryValue) -> dict[str, Any]:
    match value:
        case SchemaValue():
            return _schema_fields(value)
        case ConfigValue(subject, config):
            return _subject_field(subject) | config.to_json()
        case ModeValue(subject, mode):
            return _subject_field(subject) | {"mode": mode.value}
        case DeleteSubjectValue(subject, version):
            return {"subject": subject, "version": version}
        case ClearSubjectValue(subject):
            return {"subject": subject}
        case ContextValue(context, tenant):
            return {"tenant": tenant, "context": context}
        case HighestDeletedIds(by_context):
            return {"maxIds": dict(sorted(by_context.items()))}


def _subject_field(subject: str | None) -> dict[str, Any]:
    return {"subject": subject} if subject else {}


def _schema_fields(value: SchemaValue) -> dict[str, Any]:
    definition = value.definition
    fields: dict[str, Any] = {
        "subject": value.subject,
        "version": value.version,
        "id": value.id,
        "md5": value.md5,
        "schemaType": definition.schema_type,
        "references": [reference.to_json() for reference in definition.references],
        "metadata": definition.metadata and definition.metadata.to_json(),
        "ruleSet": definition.rule_set and definition.rule_set.to_json(),
        "schema": definition.schema,
    }
    # An empty object is written, a missing one is not: Jackson's NON_EMPTY.
    present = {name: field for name, field in fields.items() if field is not None and field != []}
    return {**present, "deleted": value.deleted}


def _read_key(fields: Mapping[str, Any]) -> RegistryKey:
    keytype = fields["keytype"]
    match keytype:
        case "SCHEMA":
            if fields.get("magic", 1) not in (0, 1):
                raise ValueError(f"magic {fields['magic']} is unknown")
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
    raise ValueError(f"keytype {keytype} is unknown")


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
    """Returns a subject or a context, or None for the global scope."""
    return None if fields.get("subject") is None else _name(fields)


def _name(fields: Mapping[str, Any], field_name: str = "subject") -> str:
    name = fields[field_name]
    if not isinstance(name, str):
        raise TypeError(f"{field_name}: a string is expected, not {name!r:.100}")
    return name


def _number(fields: Mapping[str, Any], name: str) -> int:
    number = fields[name]
    if not isinstance(number, int):
        raise TypeError(f"{name}: a whole number is expected, not {number!r:.100}")
    return number


def _bytes(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()
