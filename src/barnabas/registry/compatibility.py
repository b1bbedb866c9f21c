"""Whether a new schema may follow those that a subject has."""

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
    """Why it may not follow `earlier` (in ascending order); nothing if it may.

    The newest version that it is incompatible with is the one that is told of.
    """
    level = config.compatibility_level or DEFAULT_LEVEL
    if (group := config.compatibility_group) is not None:
        own = _property(definition, group)
        earlier = [each for each in earlier if _property(each.definition, group) == own]
    for version in reversed(earlier if level.is_transitive else earlier[-1:]):
        if level is CompatibilityLevel.NONE:
            found = []
        elif version.definition.schema_type != definition.schema_type:
            found = ["Incompatible because of different schema type"]
        else:
            found = _between(level, schema, parse_stored_version(state, version))
        if found:
            return [*found, *_about(version), _rules_of(config, level)]
    return []


def _between(level: CompatibilityLevel, new: ParsedSchema, old: ParsedSchema) -> list[str]:
    reasons = []
    try:
        if level.new_reads_old:
            reasons += [_told(each, "new", "old") for each in new.find_incompatibilities(old)]
        if level.old_reads_new:
            reasons += [_told(each, "old", "new") for each in old.find_incompatibilities(new)]
    except SchemaError as error:
        raise errors.invalid_schema(f"Invalid schema, details: {error}") from error
    return reasons


def _told(each: Incompatibility, reader: str, writer: str) -> str:
    told = f"{{errorType:'{each.error_type}', description:'{each.describe(reader, writer)}'"
    return f"{told}, additionalInfo:'{each.additional}'}}" if each.additional else f"{told}}}"


def _about(version: SchemaValue) -> list[str]:
    text = version.definition.schema
    return [f"{{oldSchemaVersion: {version.version}}}", f"{{oldSchema: '{text}'}}"]


def _rules_of(config: SubjectConfig, level: CompatibilityLevel) -> str:
    checks_fields = str(bool(config.validate_fields)).lower()
    return f"{{validateFields: '{checks_fields}', compatibility: '{level}'}}"


def _property(definition: SchemaDefinition, name: str) -> str | None:
    return None if definition.metadata is None else definition.metadata.get_property(name)
