"""Finds versions of a subject: by number, or by the definition that was registered."""

from dataclasses import replace
from functools import lru_cache
from typing import Protocol, Self, TypeVar

from barnabas.registry import errors
from barnabas.registry.config import SubjectConfig
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import SchemaValue
from barnabas.registry.schema_parser import canonicalize, collect_referenced_texts
from barnabas.registry.state import RegistryState
from barnabas.schemas import SchemaError, SchemaType, parse

MAX_REMEMBERED_FORMS = 10_000
"""Stored definitions whose other forms are known: a lookup must not parse every version."""


def find_registered_version(
    state: RegistryState,
    subject: str,
    definition: SchemaDefinition,
    *,
    normalize: bool,
    deleted: bool,
) -> SchemaValue | None:
    """Finds the definition as it is, or with the metadata and rules that registering would add."""
    version = find_version_with(state, subject, definition, normalize=normalize, deleted=deleted)
    if version is not None:
        return version
    full = with_inherited_metadata(
        definition, state.effective_config(subject), state.latest(subject)
    )
    if full == definition:
        return None
    return find_version_with(state, subject, full, normalize=normalize, deleted=deleted)


def find_version_with(
    state: RegistryState,
    subject: str,
    definition: SchemaDefinition,
    *,
    normalize: bool,
    deleted: bool = False,
) -> SchemaValue | None:
    """Returns the newest version with this definition."""
    canonical = canonicalize(state, subject, definition, normalize=normalize)
    versions = [
        version
        for version in state.versions_with(subject, canonical)
        if deleted or not version.deleted
    ]
    if versions:
        return versions[-1]
    return _find_equivalent(state, subject, canonical, deleted=deleted)


def _find_equivalent(
    state: RegistryState, subject: str, canonical: SchemaDefinition, *, deleted: bool
) -> SchemaValue | None:
    """Finds a version that another registry stored in another form.

    Also finds one that equals the definition once its references are inlined: clients with
    compiled classes look schemas up in that form.
    """
    for version in reversed(state.versions(subject, deleted=deleted)):
        stored = version.definition
        if stored.schema_type != canonical.schema_type:
            continue
        try:
            texts = collect_referenced_texts(state, version.subject, stored)
        except RegistryError:
            continue  # a reference does not exist
        if canonical in _other_forms(stored, tuple(texts.items())):
            return version
    return None


@lru_cache(MAX_REMEMBERED_FORMS)
def _other_forms(
    stored: SchemaDefinition, referenced_texts: tuple[tuple[str, str], ...]
) -> tuple[SchemaDefinition, ...]:
    """Returns a definition as it would be stored now, and with its references inlined.

    Returns no form if it cannot be parsed: another registry may have stored it.
    """
    try:
        schema = parse(SchemaType(stored.schema_type), stored.schema, dict(referenced_texts))
        canonical = stored if schema.text == stored.schema else replace(stored, schema=schema.text)
        if not stored.references:
            return (canonical,)
        return canonical, replace(stored, schema=schema.resolved, references=())
    except SchemaError:
        return ()


def with_inherited_metadata(
    definition: SchemaDefinition, config: SubjectConfig, previous: SchemaValue | None
) -> SchemaDefinition:
    """Adds the latest version's metadata and rules if the definition has none, and the config's.

    Defaults of the config are weaker than the definition, overrides are stronger.
    """
    metadata, rules = definition.metadata, definition.rule_set
    if previous is not None:
        metadata = metadata or previous.definition.metadata
        rules = rules or previous.definition.rule_set
    return replace(
        definition,
        metadata=_layered(config.default_metadata, metadata, config.override_metadata),
        rule_set=_layered(config.default_rule_set, rules, config.override_rule_set),
    )


class _Layer(Protocol):
    def merged_over(self, weaker: Self | None) -> Self: ...


L = TypeVar("L", bound=_Layer)


def _layered(*weakest_first: L | None) -> L | None:
    merged: L | None = None
    for layer in weakest_first:
        merged = merged if layer is None else layer.merged_over(merged)
    return merged


LATEST_VERSION = -1


def parse_version(text: str) -> int:
    """Returns a number, or -1 for the latest. Raises RegistryError 42202 for anything else."""
    if text == "latest":
        return LATEST_VERSION
    try:
        version = int(text)
    except ValueError:
        raise errors.invalid_version(text) from None
    if "_" in text or (version != LATEST_VERSION and not 1 <= version <= 2**31 - 1):
        raise errors.invalid_version(text)
    return version


def find_version(
    state: RegistryState, subject: str, version: int, *, deleted: bool = False
) -> SchemaValue | None:
    """Returns the version if it exists. The latest is never a deleted one."""
    if version == LATEST_VERSION:
        return state.latest(subject)
    return state.version(subject, version, deleted=deleted)


def require_version(
    state: RegistryState, subject: str, version: int, *, deleted: bool = False
) -> SchemaValue:
    """Raises RegistryError 40401 or 40402 if there is none."""
    if (value := find_version(state, subject, version, deleted=deleted)) is not None:
        return value
    if not state.has_versions(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.version_not_found(version)
