"""Schemas in a registry: listing, reading, registering, checking and deleting them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.operations.errors import CommandError, UnreadableFileError
from barnabas.cli.operations.settings import read_properties
from barnabas.schema_registry import (
    RegisteredSchema,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from barnabas.schemas import SchemaType

DEFAULT_REGISTRY = "http://localhost:8081"

_TYPES_BY_SUFFIX = {
    ".avsc": SchemaType.AVRO,
    ".json": SchemaType.JSON,
    ".proto": SchemaType.PROTOBUF,
}
_INCOMPATIBILITY = re.compile(
    r"\{errorType:'(?P<type>.*?)', description:'(?P<description>.*)', additionalInfo:.*\}",
    re.DOTALL,
)
"""A reason, as registries write it; they also repeat the older schema."""
_NOT_FOUND = 404
_INCOMPATIBLE = 409
_SUBJECT_IS_SOFT_DELETED = 40404
_VERSION_IS_SOFT_DELETED = 40406
_NO_LEVEL_OF_SUBJECT = 40408


def open_registry(url: str, file: str | None = None) -> SchemaRegistryClient:
    """Returns a client that gives up within seconds, with the settings of a file.

    Raises CommandError for an invalid URL or setting.
    """
    settings = read_properties(file) if file is not None else {}
    option = "--registry" if file is None else "--registry or --registry-config"
    try:
        return SchemaRegistryClient({"timeout": 10, "max.retries": 0, **settings, "url": url})
    except (ValueError, TypeError, OSError) as error:
        raise CommandError(f"{option}: {error}") from None


def list_subjects(
    client: SchemaRegistryClient, pattern: re.Pattern[str] | None
) -> list[RegisteredSchema]:
    """Returns the latest version of each subject, or of those that fully match the pattern."""
    subjects = [
        subject
        for subject in sorted(client.get_subjects())
        if pattern is None or pattern.fullmatch(subject)
    ]
    return [client.get_latest_version(subject) for subject in subjects]


def find_latest(client: SchemaRegistryClient, subject: str) -> RegisteredSchema | None:
    """Returns the latest version of a subject; None if it has none."""
    try:
        return client.get_latest_version(subject)
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            return None
        raise


def read_schema(
    file: Path, schema_type: str | None = None, references: Sequence[SchemaReference] = ()
) -> Schema:
    """Reads a schema; its type is that of the file's suffix, unless it is given."""
    kind = schema_type or _TYPES_BY_SUFFIX.get(file.suffix)
    if kind is None:
        suffixes = ", ".join(_TYPES_BY_SUFFIX)
        raise CommandError(f"{file} has none of the suffixes {suffixes}: give --type")
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise UnreadableFileError(file, error) from None
    except UnicodeDecodeError:
        raise CommandError(f"{file} is not a schema: it is not UTF-8 text") from None
    return Schema(text, str(kind).upper(), list(references))


def parse_reference(text: str) -> SchemaReference:
    """Parses `NAME:SUBJECT:VERSION`; the name may contain colons."""
    name, subject, version = ["", "", *text.rsplit(":", 2)][-3:]
    if not name or not subject or not version.isdecimal():
        raise CommandError(f"{text!r} is not NAME:SUBJECT:VERSION")
    return SchemaReference(name, subject, int(version))


def register_schema(client: SchemaRegistryClient, subject: str, schema: Schema) -> int:
    """Registers a schema and returns its id. Raises CommandError, with the reasons, if it is not
    compatible."""
    try:
        return client.register_schema(subject, schema)
    except SchemaRegistryError as error:
        if error.http_status_code != _INCOMPATIBLE:
            raise
        reasons = find_incompatibilities(client, subject, schema)
        if not reasons:
            raise
        level = compatibility_level(client, subject).level
        raise CommandError(
            "\n  ".join([f"the schema is not compatible with {subject} ({level}):", *reasons])
        ) from None


def delete_schema(
    client: SchemaRegistryClient, subject: str, version: int | None, *, permanent: bool
) -> list[int]:
    """Deletes a subject or one of its versions; returns the deleted versions.

    A permanent deletion needs a soft one before, which is done too.
    """

    def delete(is_permanent: bool) -> list[int]:
        if version is None:
            return client.delete_subject(subject, permanent=is_permanent)
        return [client.delete_version(subject, version, permanent=is_permanent)]

    if not permanent:
        return delete(False)
    try:
        delete(False)
    except SchemaRegistryError as error:
        if error.error_code not in (_SUBJECT_IS_SOFT_DELETED, _VERSION_IS_SOFT_DELETED):
            raise
    return delete(True)


def find_incompatibilities(client: SchemaRegistryClient, subject: str, schema: Schema) -> list[str]:
    """Returns why a schema could not be registered, in sentences where the registry has them."""
    messages = client.find_incompatibilities(subject, schema)
    found = [match for message in messages if (match := _INCOMPATIBILITY.fullmatch(message))]
    return [f"{match['description']} ({match['type']})" for match in found] or messages


@dataclass(slots=True, frozen=True)
class SubjectLevel:
    level: str
    is_global: bool
    """Whether the subject has no level of its own."""


def compatibility_level(client: SchemaRegistryClient, subject: str | None) -> SubjectLevel:
    try:
        return SubjectLevel(client.get_compatibility(subject), subject is None)
    except SchemaRegistryError as error:
        if subject is None or error.error_code != _NO_LEVEL_OF_SUBJECT:
            raise
        return SubjectLevel(client.get_compatibility(), is_global=True)
