"""/schemas: schemas by id and by guid, wherever they are registered."""

from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
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
    for name in sorted(names, key=lambda name: (QualifiedSubject.parse(name).context, name)):
        versions = state.versions(name, deleted=deleted)
        listed += versions[-1:] if latest else versions
    if rule_type:
        listed = [each for each in listed if _has_rule(each, rule_type)]
    told = [
        version_json(each) | ({"aliases": aliases[each.subject]} if each.subject in aliases else {})
        for each in paginate(request, listed, MAX_SCHEMAS)
    ]
    return json_response(request, told)


def _aliases(state: RegistryState, prefix: str) -> dict[str, list[str]]:
    """By the subjects they stand for."""
    found: dict[str, list[str]] = {}
    for scope, config in list(state.configs.items()):
        if scope is not None and config.alias and has_prefix(scope, prefix):
            found.setdefault(qualify_reference(scope, config.alias), []).append(scope)
    return found


def _has_rule(value: SchemaValue, rule_type: str) -> bool:
    rules = value.definition.rule_set
    return rules is not None and any(rule.type == rule_type for rule in rules.rules)


async def list_types(request: Request) -> Response:
    return json_response(request, [SchemaType.JSON, SchemaType.PROTOBUF, SchemaType.AVRO])


# By id


@falls_back_to_leader
async def get_schema(request: Request) -> Response:
    context, found = _by_id(request)
    subject = _subject(request)
    value = _somewhere(state_of(request), found, str(subject))
    named = {"subject": value.subject, "version": value.version} if subject.name else {}
    told = named | schema_json(found.definition, format_schema(request, value))
    told = with_qualified_references(request, value, told)
    if query_flag(request, "fetchMaxId"):
        told["maxId"] = context.max_id
    return json_response(request, told)


@falls_back_to_leader
async def get_schema_text(request: Request) -> Response:
    _, found = _by_id(request)
    return text_response(request, format_schema(request, _somewhere(state_of(request), found)))


async def list_subjects(request: Request) -> Response:
    names = dict.fromkeys(each.subject for each in _places(request))
    return json_response(request, paginate(request, list(names)))


async def list_versions(request: Request) -> Response:
    places = [{"subject": each.subject, "version": each.version} for each in _places(request)]
    return json_response(request, paginate(request, places))


# By guid


@falls_back_to_leader
async def get_schema_by_guid(request: Request) -> Response:
    guid = request.path_params["guid"]
    for _, found in _by_guid(state_of(request), guid):
        text = format_schema(request, _somewhere(state_of(request), found))
        return json_response(request, schema_json(found.definition, text))
    raise errors.schema_not_found(guid)


async def list_ids(request: Request) -> Response:
    """In which contexts it has which ids."""
    found = _by_guid(state_of(request), request.path_params["guid"])
    ids = sorted((context.name, each.id) for context, each in found)
    return json_response(request, [{"context": context, "id": id_} for context, id_ in ids])


def _by_guid(state: RegistryState, guid: str) -> Iterator[tuple[SchemaContext, SchemaEntry]]:
    for context in state.contexts.values():
        for found in context.by_guid.get(guid.lower(), {}).values():
            yield context, found


def _by_id(request: Request) -> tuple[SchemaContext, SchemaEntry]:
    """In the context of the subject that may be given; without one, wherever there is one."""
    id_ = path_number(request, "id")
    state = state_of(request)
    subject = _subject(request)
    named = state.contexts.get(subject.context)
    if named is not None and id_ in named.by_id:
        return named, named.by_id[id_]
    if subject.name and subject.context == DEFAULT_CONTEXT:
        for context in state.contexts.values():
            found = context.by_id.get(id_)
            if (
                found is not None
                and str(QualifiedSubject(context.name, subject.name)) in found.versions_by_subject
            ):
                return context, found
    raise errors.schema_not_found(id_)


def _subject(request: Request) -> QualifiedSubject:
    """Whose context is asked; of the default one if none is named."""
    return QualifiedSubject.parse(
        resolve_alias(state_of(request), request.query_params.get("subject", ""))
    )


def _places(request: Request) -> list[SchemaValue]:
    _, found = _by_id(request)
    state = state_of(request)
    deleted = query_flag(request, "deleted")
    values = (
        state.version(subject, version, deleted=deleted)
        for subject, versions in found.versions_by_subject.items()
        for version in sorted(versions)
    )
    return [each for each in values if each is not None]


def _somewhere(state: RegistryState, found: SchemaEntry, wanted: str = "") -> SchemaValue:
    """One of the versions that the schema is, of the wanted subject if it is there.

    What it refers to is found from there.
    """
    subject = (
        wanted if wanted in found.versions_by_subject else next(iter(found.versions_by_subject))
    )
    value = state.version(subject, min(found.versions_by_subject[subject]), deleted=True)
    assert value is not None
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
