"""Parses definitions with the texts they refer to, and caches the parsed schemas."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache

from barnabas.registry import errors
from barnabas.registry.config import SubjectConfig
from barnabas.registry.definitions import RegistryReference, SchemaDefinition
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
    texts = tuple(collect_referenced_texts(state, subject, definition).items())
    with as_registry_error(definition):
        return _parse(schema_type, definition.schema, texts)


def parse_stored_version(state: RegistryState, value: SchemaValue) -> ParsedSchema:
    return parse_definition(state, value.subject, value.definition)


def parse_new_definition(
    state: RegistryState, subject: str, definition: SchemaDefinition, config: SubjectConfig
) -> ParsedSchema:
    """Parses a new definition. Raises RegistryError 42201 for invalid names and defaults too."""
    schema = parse_definition(state, subject, definition)
    if config.validate_new_schemas is not False:
        with as_registry_error(definition):
            schema.require_valid()
    return schema


def canonicalize(
    state: RegistryState, subject: str, definition: SchemaDefinition, *, normalize: bool
) -> SchemaDefinition:
    """Returns the definition in the form in which it is stored.

    Raises RegistryError 42201 if it has names that are not defined, unless it is imported.
    """
    references = tuple(
        reference
        if reference.version > 0
        else replace(reference, version=_latest_version(state, subject, reference.subject))
        for reference in definition.references
    )
    definition = replace(definition, references=references)
    schema = parse_definition(state, subject, definition)
    with as_registry_error(definition):
        if not state.effective_mode(subject).accepts_ids:
            strict = bool(state.effective_config(subject).validate_fields)
            schema.require_resolved(strict=strict)
        if not normalize:
            return replace(definition, schema=schema.text)
        in_order = tuple(sorted(set(references), key=lambda item: (item.name, item.subject)))
        return replace(definition, schema=schema.normalized, references=in_order)


def collect_referenced_texts(
    state: RegistryState, subject: str, definition: SchemaDefinition
) -> Mapping[str, str]:
    """Returns the texts that a schema refers to, directly or not, by the names they are used by.

    Each text follows those that it refers to itself. If a name stands for several versions, the
    first is used.
    """
    texts: dict[str, str] = {}
    visited: set[str] = set()
    pending = [_References(subject, definition)]
    while pending:
        reference = next(pending[-1].remaining, None)
        if reference is None:
            finished = pending.pop()
            if finished.name is not None:
                texts[finished.name] = finished.text
        elif reference.name not in visited:
            visited.add(reference.name)
            referenced = _require_referenced(state, pending[-1].subject, reference)
            pending.append(_References(referenced.subject, referenced.definition, reference.name))
    return texts


class _References:
    """The references of one schema, while they are collected."""

    __slots__ = ("name", "remaining", "subject", "text")

    def __init__(self, subject: str, definition: SchemaDefinition, name: str | None = None) -> None:
        self.name = name  # None for the schema whose references are collected
        self.subject = subject
        self.text = definition.schema
        self.remaining = iter(definition.references)


def _require_referenced(
    state: RegistryState, referrer: str, reference: RegistryReference
) -> SchemaValue:
    name = qualify_reference(referrer, reference.subject)
    version = state.version(name, reference.version, deleted=True)
    if version is None:
        raise errors.invalid_schema(
            f"Invalid schema, details: No schema reference found for subject "
            f'"{reference.subject}" and version {reference.version}'
        )
    return version


def _latest_version(state: RegistryState, subject: str, referenced: str) -> int:
    latest = state.latest(qualify_reference(subject, referenced))
    if latest is None:
        raise errors.invalid_schema(
            f'Invalid schema, details: No schema reference found for subject "{referenced}"'
        )
    return latest.version


@contextmanager
def as_registry_error(definition: SchemaDefinition) -> Iterator[None]:
    """Turns a SchemaError into RegistryError 42201. Parsed schemas raise it later too."""
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
