"""/schemas: schemas by id and by guid, and lists over all subjects."""

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.access import describable
from barnabas.registry.api.forwarding import falls_back_to_leader
from barnabas.registry.api.request_parsing import path_number, query_flag, resolve_alias, state_of
from barnabas.registry.api.responses import (
    MAX_SCHEMAS,
    format_schema,
    json_response,
    paginate,
    schema_json,
    text_response,
    version_json,
    with_qualified_references,
)
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import SchemaValue
from barnabas.registry.state import RegistryState, SchemaContext, SchemaEntry
from barnabas.registry.subjects import (
    DEFAULT_CONTEXT,
    QualifiedSubject,
    has_prefix,
    qualify_reference,
)
from barnabas.schemas import SchemaType


async def list_schemas(request: Request) -> Response:
    state = state_of(request)
    prefix = request.query_params.get("subjectPrefix", "")
    rule_type = request.query_params.get("ruleType", "")
    deleted, latest = query_flag(request, "deleted"), query_flag(request, "latestOnly")
    aliases = _aliases(state, prefix) if query_flag(request, "aliases") else {}
    names = {name for name in state.subjects() if has_prefix(name, prefix)}.union(aliases)
    listed: list[SchemaValue] = []
    names = set(await describable(request, names))
    for name in sorted(names, key=lambda name: (QualifiedSubject.parse(name).context, name)):
        versions = state.versions(name, deleted=deleted)
        listed += versions[-1:] if latest else versions
    if rule_type:
        listed = [item for item in listed if _has_rule(item, rule_type)]
    content = [
        version_json(item) | ({"aliases": aliases[item.subject]} if item.subject in aliases else {})
        for item in paginate(request, listed, MAX_SCHEMAS)
    ]
    return json_response(request, content)


def _aliases(state: RegistryState, prefix: str) -> dict[str, list[str]]:
    """Returns aliases by the subjects they stand for."""
    aliases: dict[str, list[str]] = {}
    for scope, config in list(state.configs.items()):
        if scope is not None and config.alias and has_prefix(scope, prefix):
            aliases.setdefault(qualify_reference(scope, config.alias), []).append(scope)
    return aliases


def _has_rule(value: SchemaValue, rule_type: str) -> bool:
    rules = value.definition.rule_set
    return rules is not None and any(rule.type == rule_type for rule in rules.rules)


async def list_types(request: Request) -> Response:
    return json_response(request, [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO])


# By id


@falls_back_to_leader
async def get_schema(request: Request) -> Response:
    context, entry = _find_by_id(request)
    subject = _subject(request)
    value = await _readable_version(request, entry, str(subject))
    location = {"subject": value.subject, "version": value.version} if subject.name else {}
    content = location | schema_json(entry.definition, format_schema(request, value))
    content = with_qualified_references(request, value, content)
    if query_flag(request, "fetchMaxId"):
        content["maxId"] = context.max_id
    return json_response(request, content)


@falls_back_to_leader
async def get_schema_text(request: Request) -> Response:
    _, entry = _find_by_id(request)
    return text_response(request, format_schema(request, await _readable_version(request, entry)))


async def list_subjects(request: Request) -> Response:
    names = dict.fromkeys(item.subject for item in await _list_versions_of_id(request))
    return json_response(request, paginate(request, list(names)))


async def list_versions(request: Request) -> Response:
    versions = [
        {"subject": item.subject, "version": item.version}
        for item in await _list_versions_of_id(request)
    ]
    return json_response(request, paginate(request, versions))


# By guid


@falls_back_to_leader
async def get_schema_by_guid(request: Request) -> Response:
    guid = request.path_params["guid"]
    for _, entry in _find_by_guid(state_of(request), guid):
        text = format_schema(request, await _readable_version(request, entry))
        return json_response(request, schema_json(entry.definition, text))
    raise errors.schema_not_found(guid)


async def list_ids(request: Request) -> Response:
    """Returns the ids of a schema by context."""
    entries = _find_by_guid(state_of(request), request.path_params["guid"])
    ids = sorted(
        [
            (context.name, entry.id)
            for context, entry in list(entries)
            if await describable(request, entry.versions_by_subject)
        ]
    )
    return json_response(request, [{"context": context, "id": id_} for context, id_ in ids])


def _find_by_guid(state: RegistryState, guid: str) -> Iterator[tuple[SchemaContext, SchemaEntry]]:
    for context in state.contexts.values():
        for entry in context.by_guid.get(guid.lower(), {}).values():
            yield context, entry


def _find_by_id(request: Request) -> tuple[SchemaContext, SchemaEntry]:
    """Finds the id in the context of the `subject` parameter, or in one that has that subject."""
    id_ = path_number(request, "id")
    state = state_of(request)
    subject = _subject(request)
    named_context = state.contexts.get(subject.context)
    if named_context is not None and id_ in named_context.by_id:
        return named_context, named_context.by_id[id_]
    if subject.name and subject.context == DEFAULT_CONTEXT:
        for context in state.contexts.values():
            entry = context.by_id.get(id_)
            if (
                entry is not None
                and str(QualifiedSubject(context.name, subject.name)) in entry.versions_by_subject
            ):
                return context, entry
    raise errors.schema_not_found(id_)


def _subject(request: Request) -> QualifiedSubject:
    """Returns the `subject` parameter, which names a context; the default one if it is missing."""
    return QualifiedSubject.parse(
        resolve_alias(state_of(request), request.query_params.get("subject", ""))
    )


async def _list_versions_of_id(request: Request) -> list[SchemaValue]:
    _, entry = _find_by_id(request)
    state = state_of(request)
    deleted = query_flag(request, "deleted")
    values = [
        state.version(subject, version, deleted=deleted)
        for subject in await describable(request, entry.versions_by_subject)
        for version in sorted(entry.versions_by_subject.get(subject, ()))
    ]
    return [value for value in values if value is not None]


async def _readable_version(
    request: Request, entry: SchemaEntry, preferred: str = ""
) -> SchemaValue:
    """Returns a version that has the schema, of the preferred subject if that has it.

    Its references are looked up from there. Raises RegistryError 40301 if the client may describe
    none of its subjects.
    """
    readable = await describable(request, entry.versions_by_subject)
    if not readable:
        raise RegistryError(40301, "The user may describe none of the subjects of the schema")
    subject = preferred if preferred in readable else readable[0]
    versions = entry.versions_by_subject.get(subject, ())
    value = state_of(request).version(subject, min(versions, default=0), deleted=True)
    if value is None:  # it was deleted in the meantime
        raise errors.schema_not_found()
    return value


ROUTES = [
    Route("/schemas", list_schemas, methods=["GET"]),
    Route("/schemas/types", list_types, methods=["GET"]),
    Route("/schemas/ids/{id}", get_schema, methods=["GET"]),
    Route("/schemas/ids/{id}/schema", get_schema_text, methods=["GET"]),
    Route("/schemas/ids/{id}/subjects", list_subjects, methods=["GET"]),
    Route("/schemas/ids/{id}/versions", list_versions, methods=["GET"]),
    Route("/schemas/guids/{guid}", get_schema_by_guid, methods=["GET"]),
    Route("/schemas/guids/{guid}/ids", list_ids, methods=["GET"]),
]
