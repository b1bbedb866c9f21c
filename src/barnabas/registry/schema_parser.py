"""Parses definitions with the texts they refer to, and caches the parsed schemas."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from barnabas.registry import errors
from barnabas.registry.config import SubjectConfig
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.records import SchemaValue
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import qualify_reference
from barnabas.schemas import ParsedSchema, SchemaError, SchemaType, parse

MAX_CACHED_SCHEMAS = 1000


def parse_definition(
    state: RegistryState, subject: str, definition: SchemaDefinition
) -> ParsedSchema:
    """Raises RegistryError 42201 if the text is not a schema, or a reference does not exist."""
    try:
        schema_type = SchemaType(definition.schema_type)
    except ValueError:
        raise errors.invalid_schema(f"Invalid schema type {definition.schema_type}") from None
    texts = tuple(sorted(collect_referenced_texts(state, subject, definition).items()))
    with _as_registry_error(definition):
        return _parse(schema_type, definition.schema, texts)


def parse_stored_version(state: RegistryState, value: SchemaValue) -> ParsedSchema:
    return parse_definition(state, value.subject, value.definition)


def parse_new_definition(
    state: RegistryState, subject: str, definition: SchemaDefinition, config: SubjectConfig
) -> ParsedSchema:
    """Parses a new definition. Raises RegistryError 42201 for invalid names and defaults too."""
    schema = parse_definition(state, subject, definition)
    if config.validate_new_schemas is not False:
        with _as_registry_error(definition):
            schema.require_valid()
    return schema


def canonicalize(
    state: RegistryState, subject: str, definition: SchemaDefinition, *, normalize: bool
) -> SchemaDefinition:
    """Returns the definition in the form in which it is stored."""
    references = tuple(
        reference
        if reference.version > 0
        else replace(reference, version=_latest_version(state, subject, reference.subject))
        for reference in definition.references
    )
    definition = replace(definition, references=references)
    schema = parse_definition(state, subject, definition)
    if not normalize:
        return replace(definition, schema=schema.text)
    in_order = tuple(sorted(set(references), key=lambda item: (item.name, item.subject)))
    return replace(definition, schema=schema.normalized, references=in_order)


def collect_referenced_texts(
    state: RegistryState, subject: str, definition: SchemaDefinition
) -> Mapping[str, str]:
    """Returns the texts that a schema refers to, directly or not, by the names they are used by."""
    texts: dict[str, str] = {}
    pending = [(subject, definition)]
    while pending:
        referrer, current = pending.pop()
        for reference in current.references:
            if reference.name in texts:
                continue
            name = qualify_reference(referrer, reference.subject)
            version = state.version(name, reference.version, deleted=True)
            if version is None:
                raise errors.invalid_schema(
                    f"Invalid schema, details: No schema reference found for subject "
                    f'"{reference.subject}" and version {reference.version}'
                )
            texts[reference.name] = version.definition.schema
            pending.append((name, version.definition))
    return texts


def _latest_version(state: RegistryState, subject: str, referenced: str) -> int:
    latest = state.latest(qualify_reference(subject, referenced))
    if latest is None:
        raise errors.invalid_schema(
            f'Invalid schema, details: No schema reference found for subject "{referenced}"'
        )
    return latest.version


@contextmanager
def _as_registry_error(definition: SchemaDefinition) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise errors.invalid_schema(
            f"Invalid schema of type {definition.schema_type}, details: {error}"
        ) from error


@lru_cache(MAX_CACHED_SCHEMAS)
def _parse(
    schema_type: SchemaType, text: str, references: tuple[tuple[str, str], ...]
) -> ParsedSchema:
    return parse(schema_type, text, dict(references))
