"""/subjects: register schemas, look them up, list and delete them."""

from collections.abc import Mapping
from typing import Any

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
    text_field,
)
from barnabas.registry.api.versions import read_version, require_version
from barnabas.registry.api.written import registered_json, version_json
from barnabas.registry.commands import register
from barnabas.registry.documents import Definition
from barnabas.registry.lookup import looked_up
from barnabas.registry.records import read_definition


async def list_subjects(request: Request) -> Response:
    state = state_of(request)
    return answered(request, sorted(name for name in state.names() if state.has(name)))


async def look_up(request: Request) -> Response:
    subject, state = subject_of(request), state_of(request)
    definition = definition_of(await body_of(request))
    deleted = flag(request, "deleted")
    normalize = flag(request, "normalize") or bool(state.config(subject).normalize)
    found = looked_up(state, subject, definition, normalize=normalize, deleted=deleted)
    if found is None:
        if not state.has(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        raise errors.schema_not_found()
    return answered(request, version_json(found))


async def list_versions(request: Request) -> Response:
    subject, state = subject_of(request), state_of(request)
    if not state.has(subject):
        raise errors.subject_not_found(subject)
    return answered(request, [each.version for each in state.versions(subject)])


async def register_schema(request: Request) -> Response:
    body = await body_of(request)
    id_ = number_field(body, "id")
    version = number_field(body, "version")
    command = register.Register(
        subject_of(request),
        definition_of(body),
        id=None if id_ is None or id_ < 0 else id_,
        version=version or None,
        normalize=flag(request, "normalize"),
        force=flag(request, "force"),
    )
    value = await instance_of(request).write(register.decide, command)
    return answered(request, registered_json(value))


async def get_version(request: Request) -> Response:
    version = read_version(request.path_params["version"])
    found = require_version(
        state_of(request), subject_of(request), version, deleted=flag(request, "deleted")
    )
    return answered(request, version_json(found))


async def get_version_text(request: Request) -> Response:
    version = read_version(request.path_params["version"])
    found = require_version(
        state_of(request), subject_of(request), version, deleted=flag(request, "deleted")
    )
    return raw(request, found.definition.schema)


def definition_of(body: Mapping[str, Any]) -> Definition:
    for name in ("schema", "schemaType"):
        text_field(body, name)
    return read_definition(body)


ROUTES = [
    Route("/subjects", list_subjects, methods=["GET"]),
    Route("/subjects/{subject}", look_up, methods=["POST"]),
    Route("/subjects/{subject}/versions", list_versions, methods=["GET"]),
    Route("/subjects/{subject}/versions", register_schema, methods=["POST"]),
    Route("/subjects/{subject}/versions/{version}", get_version, methods=["GET"]),
    Route("/subjects/{subject}/versions/{version}/schema", get_version_text, methods=["GET"]),
]
