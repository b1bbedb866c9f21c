"""Checks a new schema against the versions of a subject, by the subject's compatibility level."""

from collections.abc import Iterator, Sequence

from barnabas.registry import errors
from barnabas.registry.config import (
    DEFAULT_LEVEL,
    CompatibilityLevel,
    CompatibilityPolicy,
    SubjectConfig,
)
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import SchemaValue
from barnabas.registry.schema_parser import parse_stored_version
from barnabas.registry.state import RegistryState
from barnabas.schemas import Incompatibility, ParsedSchema, SchemaError


def find_incompatibilities(
    state: RegistryState,
    config: SubjectConfig,
    schema: ParsedSchema,
    definition: SchemaDefinition,
    earlier: Sequence[SchemaValue],
) -> list[str]:
    """Returns why the schema is incompatible with `earlier` versions (ascending), or nothing.

    Only the newest version that it is incompatible with is reported.
    """
    reasons = [
        *(_find_reserved_fields(schema, definition, earlier) if config.validate_fields else ()),
        *_find_incompatible_version(state, config, schema, definition, earlier),
    ]
    return [*reasons, _describe_level(config)] if reasons else []


def _find_incompatible_version(
    state: RegistryState,
    config: SubjectConfig,
    schema: ParsedSchema,
    definition: SchemaDefinition,
    earlier: Sequence[SchemaValue],
) -> list[str]:
    level = config.compatibility_level or DEFAULT_LEVEL
    if level is CompatibilityLevel.NONE:
        return []
    if (group := config.compatibility_group) is not None:
        own = _property(definition, group)
        earlier = [version for version in earlier if _property(version.definition, group) == own]
    for version in reversed(earlier if level.is_transitive else earlier[-1:]):
        if version.definition.schema_type != definition.schema_type:
            reasons = ["Incompatible because of different schema type"]
        else:
            reasons = _compare(config, level, schema, _parse_earlier(state, version))
        if reasons:
            return [*reasons, *_describe_version(version)]
    return []


def _parse_earlier(state: RegistryState, version: SchemaValue) -> ParsedSchema:
    try:
        return parse_stored_version(state, version)
    except RegistryError as error:
        raise errors.invalid_schema(
            f"Version {version.version} of subject {version.subject}, which the new schema is"
            f" compared with, cannot be read: delete it, or set the compatibility level to NONE."
            f" {error.message}"
        ) from error


def _compare(
    config: SubjectConfig, level: CompatibilityLevel, new: ParsedSchema, old: ParsedSchema
) -> list[str]:
    lenient = config.compatibility_policy is CompatibilityPolicy.LENIENT
    reasons = []
    try:
        if level.new_reads_old:
            found = new.find_incompatibilities(old, lenient=lenient)
            reasons += [_describe(item, "new", "old") for item in found]
        if level.old_reads_new:
            found = old.find_incompatibilities(new, lenient=lenient)
            reasons += [_describe(item, "old", "new") for item in found]
    except SchemaError as error:
        raise errors.invalid_schema(f"Invalid schema, details: {error}") from error
    return reasons


def _find_reserved_fields(
    schema: ParsedSchema, definition: SchemaDefinition, earlier: Sequence[SchemaValue]
) -> Iterator[str]:
    """Yields why the fields that metadata reserve do not stay reserved."""
    reserved = _reserved_fields(definition)
    before = _reserved_fields(earlier[-1].definition) if earlier else set()
    for name in sorted(before - reserved):
        yield (
            f"The new schema has reserved field {name} removed from its metadata which is present"
            " in the old schema's metadata."
        )
    for name in sorted(reserved):
        if schema.has_top_level_field(name):
            yield f"The new schema has field that conflicts with the reserved field {name}."


def _reserved_fields(definition: SchemaDefinition) -> set[str]:
    names = (_property(definition, "confluent:reserved") or "").split(",")
    return {name.strip() for name in names} - {""}


def _describe(item: Incompatibility, reader: str, writer: str) -> str:
    text = f"{{errorType:'{item.error_type}', description:'{item.describe(reader, writer)}'"
    return f"{text}, additionalInfo:'{item.additional}'}}" if item.additional else f"{text}}}"


def _describe_version(version: SchemaValue) -> list[str]:
    text = version.definition.schema
    return [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: '{text}'}}"]


def _describe_level(config: SubjectConfig) -> str:
    checks_fields = str(bool(config.validate_fields)).lower()
    level = config.compatibility_level or DEFAULT_LEVEL
    return f"{{validateFields: '{checks_fields}', compatibility: '{level}'}}"


def _property(definition: SchemaDefinition, name: str) -> str | None:
    return None if definition.metadata is None else definition.metadata.get_property(name)
