"""Checks a new schema against the versions of a subject, by the subject's compatibility level."""

from collections.abc import Sequence

from barnabas.registry import errors
from barnabas.registry.config import DEFAULT_LEVEL, CompatibilityLevel, SubjectConfig
from barnabas.registry.definitions import SchemaDefinition
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
    level = config.compatibility_level or DEFAULT_LEVEL
    if (group := config.compatibility_group) is not None:
        own = _property(definition, group)
        earlier = [version for version in earlier if _property(version.definition, group) == own]
    for version in reversed(earlier if level.is_transitive else earlier[-1:]):
        if level is CompatibilityLevel.NONE:
            reasons = []
        elif version.definition.schema_type != definition.schema_type:
            reasons = ["Incompatible because of different schema type"]
        else:
            reasons = _compare(level, schema, parse_stored_version(state, version))
        if reasons:
            return [*reasons, *_describe_version(version), _describe_level(config, level)]
    return []


def _compare(level: CompatibilityLevel, new: ParsedSchema, old: ParsedSchema) -> list[str]:
    reasons = []
    try:
        if level.new_reads_old:
            reasons += [_describe(item, "new", "old") for item in new.find_incompatibilities(old)]
        if level.old_reads_new:
            reasons += [_describe(item, "old", "new") for item in old.find_incompatibilities(new)]
    except SchemaError as error:
        raise errors.invalid_schema(f"Invalid schema, details: {error}") from error
    return reasons


def _describe(item: Incompatibility, reader: str, writer: str) -> str:
    text = f"{{errorType:'{item.error_type}', description:'{item.describe(reader, writer)}'"
    return f"{text}, additionalInfo:'{item.additional}'}}" if item.additional else f"{text}}}"


def _describe_version(version: SchemaValue) -> list[str]:
    text = version.definition.schema
    return [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: '{text}'}}"]


def _describe_level(config: SubjectConfig, level: CompatibilityLevel) -> str:
    checks_fields = str(bool(config.validate_fields)).lower()
    return f"{{validateFields: '{checks_fields}', compatibility: '{level}'}}"


def _property(definition: SchemaDefinition, name: str) -> str | None:
    return None if definition.metadata is None else definition.metadata.get_property(name)
