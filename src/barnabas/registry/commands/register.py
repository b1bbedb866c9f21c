"""Register a schema under a subject: a new version, or the one that it is already."""

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

_LARGEST_ID = 2**31 - 1  # that fits in front of a record, and into an int of Java


@dataclass(slots=True, frozen=True)
class Register:
    subject: str
    definition: SchemaDefinition
    id: int | None = None  # given by who imports a schema
    version: int | None = None  # one more than the latest; whichever in an import
    normalize: bool = False
    force: bool = False  # however incompatible it is


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
    if existing := _known_as(request, definition, state):
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
    before = (*_new_context(subject, state), *_superseded(value, state))
    return Decision((*before, RegistryRecord(value.key, value)), value)


def find_registered(request: Register, state: RegistryState) -> SchemaValue | None:
    """The version that it is already. To say so needs no writer, and no mode that allows writing.

    None also where it would be given metadata or rules first, or the text of the latest version.
    """
    if (
        not request.definition.schema.strip()
        or state.effective_config(request.subject).adds_metadata_or_rules
    ):
        return None
    return _known_as(request, request.definition, state)


def _normalizes(request: Register, state: RegistryState) -> bool:
    wanted = request.normalize or bool(state.effective_config(request.subject).normalize)
    return wanted and not state.effective_mode(request.subject).accepts_ids


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
    """If metadata alone were given, they are of the schema that is there."""
    if definition.schema.strip():
        return definition
    if previous is None or mode.accepts_ids:
        raise errors.invalid_schema("Empty schema")
    known = previous.definition
    return replace(
        definition,
        schema=known.schema,
        schema_type=known.schema_type,
        references=known.references,
    )


def _known_as(
    request: Register, definition: SchemaDefinition, state: RegistryState
) -> SchemaValue | None:
    """The version with this definition, if it is the one that is wanted."""
    found = find_version_with(
        state, request.subject, definition, normalize=_normalizes(request, state)
    )
    if found is None or (request.id is not None and found.id != request.id):
        return None
    if request.version is None or request.version == found.version:
        return found
    is_latest = found == state.latest(request.subject)
    return found if request.version == LATEST_VERSION and is_latest else None


def _version(request: Register, state: RegistryState, mode: RegistryMode) -> int:
    following = state.next_version(request.subject)
    if request.version is None or request.version <= 0:
        return following
    if request.version != following and not mode.accepts_ids:
        raise errors.invalid_schema("Version is not one more than previous version")
    return request.version


def _id(request: Register, definition: SchemaDefinition, state: RegistryState) -> int:
    """The same schema has the same id under every subject of a context; a new one the next."""
    context = state.context_of(request.subject)
    if request.id is None:
        known = state.find_entry(request.subject, definition)
        if known is None and context.max_id >= _LARGEST_ID:
            raise errors.not_permitted(
                f"Context {context.name} has no id left: a schema was imported as {_LARGEST_ID}"
            )
        return context.max_id + 1 if known is None else known.id
    there = context.by_id.get(request.id)
    if there is not None and there.definition != definition:
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
    """Softly deleted versions of the same schema go when it comes back as a new one."""
    earlier = state.versions_with(value.subject, value.definition)
    return tuple(
        RegistryRecord(SchemaKey(value.subject, each.version))
        for each in earlier
        if each.deleted
        and each.version < value.version
        and each.id == value.id
        and not state.referrers(each.key, deleted=True)
    )
