"""/subjects and /contexts: registers schemas, looks them up, lists and deletes them.

`PathRewriter` handles longer paths of a context.
"""

import asyncio
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.access import (
    AclOperation,
    describable,
    permitted_subject,
    require_cluster,
    require_references,
)
from barnabas.registry.api.forwarding import falls_back_to_leader, handled_by_leader
from barnabas.registry.api.request_parsing import (
    instance_of,
    number_field,
    query_flag,
    read_body,
    state_of,
)
from barnabas.registry.api.responses import (
    MAX_SCHEMAS,
    format_schema,
    json_response,
    paginate,
    registered_json,
    text_response,
    version_json,
    with_qualified_references,
)
from barnabas.registry.commands import delete, register
from barnabas.registry.definitions import SchemaDefinition, require_valid_rules
from barnabas.registry.errors import RegistryError
from barnabas.registry.lookup import (
    find_registered_version,
    find_version,
    parse_version,
    require_version,
)
from barnabas.registry.records import SchemaValue
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import (
    DEFAULT_CONTEXT,
    QualifiedSubject,
    context_prefix,
    has_prefix,
    is_registrable,
)

# Subjects


async def list_subjects(request: Request) -> Response:
    state = state_of(request)
    prefix = request.query_params.get("subjectPrefix", ":*:")
    names = await describable(
        request,
        [
            name
            for name in sorted(state.subjects())
            if has_prefix(name, prefix)
            and _is_listed(request, deleted=not state.has_versions(name))
        ],
    )
    return json_response(request, paginate(request, names))


@falls_back_to_leader
async def look_up(request: Request) -> Response:
    subject, state = await permitted_subject(request, AclOperation.DESCRIBE), state_of(request)
    definition = SchemaDefinition.from_json(await read_body(request))
    await require_references(request, subject, definition)
    deleted = query_flag(request, "deleted")
    normalize = query_flag(request, "normalize") or bool(state.effective_config(subject).normalize)
    for name in _namesakes(state, subject):
        try:
            version = await asyncio.to_thread(
                find_registered_version,
                state,
                name,
                definition,
                normalize=normalize,
                deleted=deleted,
            )
        except RegistryError:
            if name == subject:
                raise
            continue  # its references are not in that context
        if version is not None:
            return json_response(request, version_json(version, format_schema(request, version)))
    if not state.has_versions(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


async def get_latest_with_metadata(request: Request) -> Response:
    """Returns the newest version whose metadata have the given properties."""
    subject, state = await permitted_subject(request, AclOperation.DESCRIBE), state_of(request)
    deleted = query_flag(request, "deleted")
    keys, values = request.query_params.getlist("key"), request.query_params.getlist("value")
    properties = set(zip(keys, values, strict=False))
    for value in reversed(state.versions(subject, deleted=deleted)):
        metadata = value.definition.metadata
        if metadata is not None and properties <= set(metadata.properties):
            return json_response(request, version_json(value, format_schema(request, value)))
    if not state.has_versions(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


@handled_by_leader
async def delete_subject(request: Request) -> Response:
    subject = await permitted_subject(request, AclOperation.DELETE)
    command = delete.DeleteSubject(subject, permanent=query_flag(request, "permanent"))
    versions = await instance_of(request).write(delete.decide_subject, command)
    return json_response(request, versions)


# Versions


@falls_back_to_leader
async def list_versions(request: Request) -> Response:
    subject, state = await permitted_subject(request, AclOperation.DESCRIBE), state_of(request)
    if not state.has_versions(
        subject, deleted=query_flag(request, "deleted") or query_flag(request, "deletedOnly")
    ):
        raise errors.subject_not_found(subject)
    values = state.versions(subject, deleted=True)
    if query_flag(request, "deletedAsNegative"):
        signed = [-value.version if value.deleted else value.version for value in values]
        return json_response(request, paginate(request, signed))
    listed = [value.version for value in values if _is_listed(request, deleted=value.deleted)]
    return json_response(request, paginate(request, listed))


async def register_schema(request: Request) -> Response:
    subject = await permitted_subject(request, AclOperation.WRITE)
    body = await read_body(request)
    id_ = number_field(body, "id")
    version = number_field(body, "version")
    definition = SchemaDefinition.from_json(body)
    require_valid_rules(definition.rule_set)
    if not is_registrable(subject):
        raise errors.invalid_subject(subject)
    await require_references(request, subject, definition)
    command = register.Register(
        subject,
        definition,
        id=None if id_ is None or id_ < 0 else id_,
        version=version or None,
        normalize=query_flag(request, "normalize"),
        force=query_flag(request, "force"),
    )

    @handled_by_leader
    async def write(request: Request) -> Response:
        value = await instance_of(request).write(register.decide, command)
        return json_response(request, registered_json(value, definition))

    try:
        existing = await asyncio.to_thread(register.find_registered, command, state_of(request))
    except RegistryError:
        existing = None  # the leader may have more records, such as those of its references
    if existing is None:
        return await write(request)
    return json_response(request, registered_json(existing, definition))


@falls_back_to_leader
async def get_version(request: Request) -> Response:
    version = await _require_version(request, deleted=query_flag(request, "deleted"))
    content = version_json(version, format_schema(request, version))
    return json_response(request, with_qualified_references(request, version, content))


@falls_back_to_leader
async def get_version_text(request: Request) -> Response:
    version = await _require_version(request, deleted=query_flag(request, "deleted"))
    return text_response(request, format_schema(request, version))


async def list_referrers(request: Request) -> Response:
    """Returns the ids of schemas that refer to a version."""
    version = await _require_version(request, deleted=True)
    referrers = state_of(request).referrers(version.key, deleted=query_flag(request, "deleted"))
    return json_response(
        request, paginate(request, sorted({referrer.id for referrer in referrers}), MAX_SCHEMAS)
    )


@handled_by_leader
async def delete_version(request: Request) -> Response:
    command = delete.DeleteVersion(
        await permitted_subject(request, AclOperation.DELETE),
        parse_version(unquote(request.path_params["version"])),
        permanent=query_flag(request, "permanent"),
    )
    return json_response(request, await instance_of(request).write(delete.decide_version, command))


async def _require_version(request: Request, *, deleted: bool) -> SchemaValue:
    subject, state = await permitted_subject(request, AclOperation.DESCRIBE), state_of(request)
    number = parse_version(unquote(request.path_params["version"]))
    for name in _namesakes(state, subject):
        if (version := find_version(state, name, number, deleted=deleted)) is not None:
            return version
    return require_version(state, subject, number, deleted=deleted)


def _namesakes(state: RegistryState, subject: str) -> Iterator[str]:
    """Yields the subject, and if it names no context, the subjects of that name in the others."""
    yield subject
    if QualifiedSubject.parse(subject).context == DEFAULT_CONTEXT:
        for context in list(state.contexts):
            if context != DEFAULT_CONTEXT:
                yield str(QualifiedSubject(context, subject))


def _is_listed(request: Request, *, deleted: bool) -> bool:
    if query_flag(request, "deletedOnly"):
        return deleted
    return not deleted or query_flag(request, "deleted")


_VERSION = "/subjects/{subject}/versions/{version}"


# Contexts


async def list_contexts(request: Request) -> Response:
    """Leaves out the contexts of which the client may describe no subject."""
    state, prefix = state_of(request), request.query_params.get("contextPrefix", "")
    subjects = list(state.subjects())
    hidden = _contexts(subjects) - _contexts(await describable(request, subjects))
    names = sorted(
        name for name in state.contexts if name.startswith(prefix) and name not in hidden
    )
    return json_response(request, paginate(request, names))


def _contexts(subjects: Iterable[str]) -> set[str]:
    return {QualifiedSubject.parse(subject).context for subject in subjects}


@handled_by_leader
async def delete_context(request: Request) -> Response:
    await require_cluster(request)
    name = QualifiedSubject.parse(context_prefix(unquote(request.path_params["context"]))).context
    await instance_of(request).write(delete.decide_context, delete.RemoveContext(name))
    return Response(status_code=204)


ROUTES = [
    Route("/subjects", list_subjects, methods=["GET"]),
    Route("/subjects/{subject}", look_up, methods=["POST"]),
    Route("/subjects/{subject}", delete_subject, methods=["DELETE"]),
    Route("/subjects/{subject}/metadata", get_latest_with_metadata, methods=["GET"]),
    Route("/subjects/{subject}/versions", list_versions, methods=["GET"]),
    Route("/subjects/{subject}/versions", register_schema, methods=["POST"]),
    Route(_VERSION, get_version, methods=["GET"]),
    Route(_VERSION, delete_version, methods=["DELETE"]),
    Route(f"{_VERSION}/schema", get_version_text, methods=["GET"]),
    Route(f"{_VERSION}/referencedby", list_referrers, methods=["GET"]),
    Route("/contexts", list_contexts, methods=["GET"]),
    Route("/contexts/{context}", delete_context, methods=["DELETE"]),
]
