"""/subjects: register schemas, look them up, list and delete them."""

import asyncio
from collections.abc import Iterator
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.answering import answered, raw
from barnabas.registry.api.asking import (
    body_of,
    flag,
    instance_of,
    number_field,
    state_of,
    subject_of,
)
from barnabas.registry.api.formatting import formatted, with_references
from barnabas.registry.api.forwarding import by_the_writer, or_by_the_writer
from barnabas.registry.api.paging import MOST_SCHEMAS, page
from barnabas.registry.api.written import registered_json, version_json
from barnabas.registry.commands import delete, register
from barnabas.registry.documents import Definition
from barnabas.registry.errors import RegistryError
from barnabas.registry.lookup import looked_up
from barnabas.registry.naming import DEFAULT_CONTEXT, Subject, has_prefix, is_registrable
from barnabas.registry.records import SchemaValue
from barnabas.registry.rules import require_valid
from barnabas.registry.state import State
from barnabas.registry.versions import find_version, read_version, require_version

# Subjects


async def list_subjects(request: Request) -> Response:
    state = state_of(request)
    prefix = request.query_params.get("subjectPrefix", ":*:")
    names = [
        name
        for name in sorted(state.names())
        if has_prefix(name, prefix) and _is_listed(request, deleted=not state.has(name))
    ]
    return answered(request, page(request, names))


@or_by_the_writer
async def look_up(request: Request) -> Response:
    subject, state = subject_of(request), state_of(request)
    definition = Definition.read(await body_of(request))
    deleted = flag(request, "deleted")
    normalize = flag(request, "normalize") or bool(state.config(subject).normalize)
    for name in _wherever(state, subject):
        try:
            found = await asyncio.to_thread(
                looked_up, state, name, definition, normalize=normalize, deleted=deleted
            )
        except RegistryError:
            if name == subject:
                raise
            continue  # what it refers to is not in that context
        if found is not None:
            return answered(request, version_json(found, formatted(request, found)))
    if not state.has(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


async def get_latest_with_metadata(request: Request) -> Response:
    """The newest version whose metadata have these properties."""
    subject, state = subject_of(request), state_of(request)
    deleted = flag(request, "deleted")
    keys, values = request.query_params.getlist("key"), request.query_params.getlist("value")
    wanted = set(zip(keys, values, strict=False))
    for value in reversed(state.versions(subject, deleted=deleted)):
        metadata = value.definition.metadata
        if metadata is not None and wanted <= set(metadata.properties):
            return answered(request, version_json(value, formatted(request, value)))
    if not state.has(subject, deleted=deleted):
        raise errors.subject_not_found(subject)
    raise errors.schema_not_found()


@by_the_writer
async def delete_subject(request: Request) -> Response:
    command = delete.DeleteSubject(subject_of(request), permanent=flag(request, "permanent"))
    versions = await instance_of(request).write(delete.decide_subject, command)
    return answered(request, versions)


# Versions


@or_by_the_writer
async def list_versions(request: Request) -> Response:
    subject, state = subject_of(request), state_of(request)
    if not state.has(subject, deleted=flag(request, "deleted") or flag(request, "deletedOnly")):
        raise errors.subject_not_found(subject)
    values = state.versions(subject, deleted=True)
    if flag(request, "deletedAsNegative"):
        signed = [-each.version if each.deleted else each.version for each in values]
        return answered(request, page(request, signed))
    listed = [each.version for each in values if _is_listed(request, deleted=each.deleted)]
    return answered(request, page(request, listed))


async def register_schema(request: Request) -> Response:
    body = await body_of(request)
    id_ = number_field(body, "id")
    version = number_field(body, "version")
    definition = Definition.read(body)
    require_valid(definition.rule_set)
    subject = subject_of(request)
    if not is_registrable(subject):
        raise errors.invalid_subject(subject)
    command = register.Register(
        subject,
        definition,
        id=None if id_ is None or id_ < 0 else id_,
        version=version or None,
        normalize=flag(request, "normalize"),
        force=flag(request, "force"),
    )

    @by_the_writer
    async def written(request: Request) -> Response:
        value = await instance_of(request).write(register.decide, command)
        return answered(request, registered_json(value, definition))

    try:
        known = await asyncio.to_thread(register.registered, command, state_of(request))
    except RegistryError:
        known = None  # the writer may know more, what it refers to among that
    if known is None:
        return await written(request)
    return answered(request, registered_json(known, definition))


@or_by_the_writer
async def get_version(request: Request) -> Response:
    found = _version(request, deleted=flag(request, "deleted"))
    told = version_json(found, formatted(request, found))
    return answered(request, with_references(request, found, told))


@or_by_the_writer
async def get_version_text(request: Request) -> Response:
    found = _version(request, deleted=flag(request, "deleted"))
    return raw(request, formatted(request, found))


async def list_referrers(request: Request) -> Response:
    """The ids of schemas that refer to a version."""
    found = _version(request, deleted=True)
    referrers = state_of(request).referrers(found.key, deleted=flag(request, "deleted"))
    return answered(request, page(request, sorted({each.id for each in referrers}), MOST_SCHEMAS))


@by_the_writer
async def delete_version(request: Request) -> Response:
    command = delete.DeleteVersion(
        subject_of(request),
        read_version(unquote(request.path_params["version"])),
        permanent=flag(request, "permanent"),
    )
    return answered(request, await instance_of(request).write(delete.decide_version, command))


def _version(request: Request, *, deleted: bool) -> SchemaValue:
    version = read_version(unquote(request.path_params["version"]))
    subject, state = subject_of(request), state_of(request)
    for name in _wherever(state, subject):
        if (found := find_version(state, name, version, deleted=deleted)) is not None:
            return found
    return require_version(state, subject, version, deleted=deleted)


def _wherever(state: State, subject: str) -> Iterator[str]:
    """The subject, and if no context was named, its namesakes in the others."""
    yield subject
    if Subject.parse(subject).context == DEFAULT_CONTEXT:
        for context in list(state.contexts):
            if context != DEFAULT_CONTEXT:
                yield str(Subject(context, subject))


def _is_listed(request: Request, *, deleted: bool) -> bool:
    if flag(request, "deletedOnly"):
        return deleted
    return not deleted or flag(request, "deleted")


_VERSION = "/subjects/{subject}/versions/{version}"
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
]
