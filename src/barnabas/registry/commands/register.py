"""Registers a schema under a subject, unless it is already a version of it."""

from dataclasses import dataclass, replace

from barnabas.decision import Decision
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.compatibility import find_incompatibilities
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.lookup import LATEST_VERSION, find_version_with, with_inherited_metadata
from barnabas.registry.records import (
    ContextKey,
    ContextValue,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.schema_parser import canonicalize, parse_new_definition
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import DEFAULT_CONTEXT, QualifiedSubject

_MAX_ID = 2**31 - 1  # fits in the prefix of a record, and in Java's int


@dataclass(slots=True, frozen=True)
class Register:
    subject: str
    definition: SchemaDefinition
    id: int | None = None  # set when a schema is imported
    version: int | None = None  # must be the next one, except when a schema is imported
    normalize: bool = False
    force: bool = False  # registers an incompatible schema too


def decide(request: Register, state: RegistryState) -> RegistryDecision[SchemaValue]:
    if existing := find_registered(request, state):
        return Decision((), existing)
    subject = request.subject
    config, mode, latest = (
        state.effective_config(subject),
        state.effective_mode(subject),
        state.latest(subject),
    )
    _require_mode(request, mode)
    definition = _with_text(request.definition, latest, mode)
    if not mode.accepts_ids:
        definition = with_inherited_metadata(definition, config, latest)
    if existing := _find_existing(request, definition, state):
        return Decision((), existing)
    definition = canonicalize(state, subject, definition, normalize=_normalizes(request, state))
    if not mode.accepts_ids:
        schema = parse_new_definition(state, subject, definition, config)
        versions = [] if request.force else state.versions(subject)
        if reasons := find_incompatibilities(state, config, schema, definition, versions):
            raise errors.incompatible(subject, reasons)
    value = SchemaValue(
        subject, _version(request, state, mode), _id(request, definition, state), definition
    )
    earlier_records = (*_new_context(subject, state), *_superseded(value, state))
    return Decision((*earlier_records, RegistryRecord(value.key, value)), value)


def find_registered(request: Register, state: RegistryState) -> SchemaValue | None:
    """Returns the version that the schema already is. Every instance may decide that, in any mode.

    Returns None as well if metadata, rules or the text of the latest version would be added first.
    """
    if (
        not request.definition.schema.strip()
        or state.effective_config(request.subject).adds_metadata_or_rules
    ):
        return None
    return _find_existing(request, request.definition, state)


def _normalizes(request: Register, state: RegistryState) -> bool:
    normalize = request.normalize or bool(state.effective_config(request.subject).normalize)
    return normalize and not state.effective_mode(request.subject).accepts_ids


def _require_mode(request: Register, mode: RegistryMode) -> None:
    where = f"Subject {request.subject} in context {QualifiedSubject.parse(request.subject).prefix}"
    if mode.is_read_only:
        raise errors.not_permitted(f"{where} is in read-only mode")
    if request.id is not None and not mode.accepts_ids:
        raise errors.not_permitted(f"{where} is not in import mode")
    if request.id is None and mode is not RegistryMode.READWRITE:
        raise errors.not_permitted(f"{where} is not in read-write mode")


def _with_text(
    definition: SchemaDefinition, previous: SchemaValue | None, mode: RegistryMode
) -> SchemaDefinition:
    """A request with metadata only is about the text of the latest version."""
    if definition.schema.strip():
        return definition
    if previous is None or mode.accepts_ids:
        raise errors.invalid_schema("Empty schema")
    latest = previous.definition
    return replace(
        definition,
        schema=latest.schema,
        schema_type=latest.schema_type,
        references=latest.references,
    )


def _find_existing(
    request: Register, definition: SchemaDefinition, state: RegistryState
) -> SchemaValue | None:
    """Returns the version with this definition, if its id and number are the requested ones."""
    existing = find_version_with(
        state, request.subject, definition, normalize=_normalizes(request, state)
    )
    if existing is None or (request.id is not None and existing.id != request.id):
        return None
    if request.version is None or request.version == existing.version:
        return existing
    is_latest = existing == state.latest(request.subject)
    return existing if request.version == LATEST_VERSION and is_latest else None


def _version(request: Register, state: RegistryState, mode: RegistryMode) -> int:
    next_version = state.next_version(request.subject)
    if request.version is None or request.version <= 0:
        return next_version
    if request.version != next_version and not mode.accepts_ids:
        raise errors.invalid_schema("Version is not one more than previous version")
    return request.version


def _id(request: Register, definition: SchemaDefinition, state: RegistryState) -> int:
    """The same schema has the same id under every subject of a context. A new one gets the next."""
    context = state.context_of(request.subject)
    if request.id is None:
        entry = state.find_entry(request.subject, definition)
        if entry is None and context.max_id >= _MAX_ID:
            raise errors.not_permitted(
                f"Context {context.name} has no id left: a schema was imported as {_MAX_ID}"
            )
        return context.max_id + 1 if entry is None else entry.id
    existing = context.by_id.get(request.id)
    if existing is not None and existing.definition != definition:
        where = QualifiedSubject.parse(request.subject).prefix
        raise errors.not_permitted(
            f"Overwrite new schema with id {request.id} in context {where} is not permitted."
        )
    return request.id


def _new_context(subject: str, state: RegistryState) -> tuple[RegistryRecord, ...]:
    name = QualifiedSubject.parse(subject).context
    if name == DEFAULT_CONTEXT or name in state.contexts:
        return ()
    return (RegistryRecord(ContextKey(name), ContextValue(name)),)


def _superseded(value: SchemaValue, state: RegistryState) -> tuple[RegistryRecord, ...]:
    """Removes soft-deleted versions of the same schema when it is registered as a new one."""
    earlier = state.versions_with(value.subject, value.definition)
    return tuple(
        RegistryRecord(SchemaKey(value.subject, item.version))
        for item in earlier
        if item.deleted
        and item.version < value.version
        and item.id == value.id
        and not state.referrers(item.key, deleted=True)
    )
