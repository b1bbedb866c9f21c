"""Register a schema under a subject: a new version, or the one that it is already."""

from dataclasses import dataclass, replace

from barnabas.registry import errors
from barnabas.registry.commands import Decision
from barnabas.registry.compatibility import reasons_against
from barnabas.registry.documents import Definition
from barnabas.registry.lookup import found_as, populated
from barnabas.registry.naming import DEFAULT_CONTEXT, Subject
from barnabas.registry.records import (
    ContextKey,
    ContextValue,
    Mode,
    Record,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.schemas import canonical, parsed_as_new
from barnabas.registry.state import State
from barnabas.registry.versions import LATEST

_LARGEST_ID = 2**31 - 1  # that fits in front of a record, and into an int of Java


@dataclass(slots=True, frozen=True)
class Register:
    subject: str
    definition: Definition
    id: int | None = None  # given by who imports a schema
    version: int | None = None  # one more than the latest; whichever in an import
    normalize: bool = False
    force: bool = False  # however incompatible it is


def decide(request: Register, state: State) -> Decision[SchemaValue]:
    if existing := registered(request, state):
        return Decision(existing)
    subject = request.subject
    config, mode, latest = state.config(subject), state.mode(subject), state.latest(subject)
    _require_mode(request, mode)
    definition = _with_text(request.definition, latest, mode)
    if not mode.takes_ids:
        definition = populated(definition, config, latest)
    if existing := _known_as(request, definition, state):
        return Decision(existing)
    definition = canonical(state, subject, definition, normalize=_normalizes(request, state))
    if not mode.takes_ids:
        schema = parsed_as_new(state, subject, definition, config)
        versions = [] if request.force else state.versions(subject)
        if reasons := reasons_against(state, config, schema, definition, versions):
            raise errors.incompatible(subject, reasons)
    value = SchemaValue(
        subject, _version(request, state, mode), _id(request, definition, state), definition
    )
    before = (*_new_context(subject, state), *_superseded(value, state))
    return Decision(value, (*before, Record(value.key, value)))


def registered(request: Register, state: State) -> SchemaValue | None:
    """The version that it is already. To say so needs no writer, and no mode that allows writing.

    None also where it would be given metadata or rules first, or the text of the latest version.
    """
    if not request.definition.schema.strip() or state.config(request.subject).says_of_schemas:
        return None
    return _known_as(request, request.definition, state)


def _normalizes(request: Register, state: State) -> bool:
    wanted = request.normalize or bool(state.config(request.subject).normalize)
    return wanted and not state.mode(request.subject).takes_ids


def _require_mode(request: Register, mode: Mode) -> None:
    where = f"Subject {request.subject} in context {Subject.parse(request.subject).prefix}"
    if mode.is_read_only:
        raise errors.not_permitted(f"{where} is in read-only mode")
    if request.id is not None and not mode.takes_ids:
        raise errors.not_permitted(f"{where} is not in import mode")
    if request.id is None and mode is not Mode.READWRITE:
        raise errors.not_permitted(f"{where} is not in read-write mode")


def _with_text(definition: Definition, previous: SchemaValue | None, mode: Mode) -> Definition:
    """If metadata alone were given, they are of the schema that is there."""
    if definition.schema.strip():
        return definition
    if previous is None or mode.takes_ids:
        raise errors.invalid_schema("Empty schema")
    known = previous.definition
    return replace(
        definition,
        schema=known.schema,
        schema_type=known.schema_type,
        references=known.references,
    )


def _known_as(request: Register, definition: Definition, state: State) -> SchemaValue | None:
    """The version with this definition, if it is the one that is wanted."""
    found = found_as(state, request.subject, definition, normalize=_normalizes(request, state))
    if found is None or (request.id is not None and found.id != request.id):
        return None
    if request.version is None or request.version == found.version:
        return found
    is_latest = found == state.latest(request.subject)
    return found if request.version == LATEST and is_latest else None


def _version(request: Register, state: State, mode: Mode) -> int:
    following = state.next_version(request.subject)
    if request.version is None or request.version <= 0:
        return following
    if request.version != following and not mode.takes_ids:
        raise errors.invalid_schema("Version is not one more than previous version")
    return request.version


def _id(request: Register, definition: Definition, state: State) -> int:
    """The same schema has the same id under every subject of a context; a new one the next."""
    context = state.context_of(request.subject)
    if request.id is None:
        known = state.same(request.subject, definition)
        if known is None and context.max_id >= _LARGEST_ID:
            raise errors.not_permitted(
                f"Context {context.name} has no id left: a schema was imported as {_LARGEST_ID}"
            )
        return context.max_id + 1 if known is None else known.id
    there = context.by_id.get(request.id)
    if there is not None and there.definition != definition:
        where = Subject.parse(request.subject).prefix
        raise errors.not_permitted(
            f"Overwrite new schema with id {request.id} in context {where} is not permitted."
        )
    return request.id


def _new_context(subject: str, state: State) -> tuple[Record, ...]:
    name = Subject.parse(subject).context
    if name == DEFAULT_CONTEXT or name in state.contexts:
        return ()
    return (Record(ContextKey(name), ContextValue(name)),)


def _superseded(value: SchemaValue, state: State) -> tuple[Record, ...]:
    """Softly deleted versions of the same schema go when it comes back as a new one."""
    earlier = state.under(value.subject, value.definition)
    return tuple(
        Record(SchemaKey(value.subject, each.version))
        for each in earlier
        if each.deleted
        and each.version < value.version
        and each.id == value.id
        and not state.referrers(each.key, deleted=True)
    )
