"""Schemas as their languages see them: read once, with the texts that they refer to."""

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

CACHED_SCHEMAS = 1000


def parse_definition(
    state: RegistryState, subject: str, definition: SchemaDefinition
) -> ParsedSchema:
    """RegistryError 42201 if it is not a schema, or refers to what is not there."""
    try:
        kind = SchemaType(definition.schema_type)
    except ValueError:
        raise errors.invalid_schema(f"Invalid schema type {definition.schema_type}") from None
    texts = tuple(sorted(collect_referenced_texts(state, subject, definition).items()))
    with _refused(definition):
        return _read(kind, definition.schema, texts)


def parse_stored_version(state: RegistryState, value: SchemaValue) -> ParsedSchema:
    return parse_definition(state, value.subject, value.definition)


def parse_new_definition(
    state: RegistryState, subject: str, definition: SchemaDefinition, config: SubjectConfig
) -> ParsedSchema:
    """The same for one that is to be registered: RegistryError 42201 if it has faults too."""
    schema = parse_definition(state, subject, definition)
    if config.validate_new_schemas is not False:
        with _refused(definition):
            schema.require_valid()
    return schema


def canonicalize(
    state: RegistryState, subject: str, definition: SchemaDefinition, *, normalize: bool
) -> SchemaDefinition:
    """The definition as it is stored: its text and references in the one form they have."""
    references = tuple(
        each if each.version > 0 else replace(each, version=_latest(state, subject, each.subject))
        for each in definition.references
    )
    definition = replace(definition, references=references)
    schema = parse_definition(state, subject, definition)
    if not normalize:
        return replace(definition, schema=schema.text)
    in_order = tuple(sorted(set(references), key=lambda each: (each.name, each.subject)))
    return replace(definition, schema=schema.normalized, references=in_order)


def collect_referenced_texts(
    state: RegistryState, subject: str, definition: SchemaDefinition
) -> Mapping[str, str]:
    """What a schema refers to, and what that refers to, by the names they use."""
    texts: dict[str, str] = {}
    left = [(subject, definition)]
    while left:
        referrer, current = left.pop()
        for each in current.references:
            if each.name in texts:
                continue
            name = qualify_reference(referrer, each.subject)
            found = state.version(name, each.version, deleted=True)
            if found is None:
                raise errors.invalid_schema(
                    f"Invalid schema, details: No schema reference found for subject "
                    f'"{each.subject}" and version {each.version}'
                )
            texts[each.name] = found.definition.schema
            left.append((name, found.definition))
    return texts


def _latest(state: RegistryState, subject: str, referred: str) -> int:
    found = state.latest(qualify_reference(subject, referred))
    if found is None:
        raise errors.invalid_schema(
            f'Invalid schema, details: No schema reference found for subject "{referred}"'
        )
    return found.version


@contextmanager
def _refused(definition: SchemaDefinition) -> Iterator[None]:
    try:
        yield
    except SchemaError as error:
        raise errors.invalid_schema(
            f"Invalid schema of type {definition.schema_type}, details: {error}"
        ) from error


@lru_cache(CACHED_SCHEMAS)
def _read(kind: SchemaType, text: str, references: tuple[tuple[str, str], ...]) -> ParsedSchema:
    return parse(kind, text, dict(references))
