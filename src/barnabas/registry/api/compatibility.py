"""/compatibility: checks a schema against versions of a subject without registering it."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.access import AclOperation, permitted_subject, require_references
from barnabas.registry.api.request_parsing import query_flag, read_body, state_of
from barnabas.registry.api.responses import json_response
from barnabas.registry.compatibility import find_incompatibilities
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.lookup import LATEST_VERSION, find_version, parse_version
from barnabas.registry.records import SchemaValue
from barnabas.registry.schema_parser import canonicalize, parse_new_definition
from barnabas.registry.state import RegistryState

_INVALID_SCHEMA = 42201


async def check_against_all(request: Request) -> Response:
    subject = await permitted_subject(request, AclOperation.DESCRIBE)
    return await _check(request, subject, state_of(request).versions(subject))


async def check_against_one(request: Request) -> Response:
    version = parse_version(request.path_params["version"])
    state, subject = state_of(request), await permitted_subject(request, AclOperation.DESCRIBE)
    existing = find_version(state, subject, version)
    if existing is None and version != LATEST_VERSION:
        raise errors.version_not_found(version)
    return await _check(request, subject, [] if existing is None else [existing])


async def _check(request: Request, subject: str, earlier: Sequence[SchemaValue]) -> Response:
    state = state_of(request)
    requested = SchemaDefinition.from_json(await read_body(request))
    await require_references(request, subject, requested)
    verbose, normalize = query_flag(request, "verbose"), query_flag(request, "normalize")
    try:
        # On a thread: comparing large schemas must not delay other requests.
        reasons = await asyncio.to_thread(
            _find_reasons, state, subject, requested, earlier, normalize
        )
    except RegistryError as error:
        if error.error_code != _INVALID_SCHEMA or not verbose:
            raise
        reasons = [error.message]
    messages = {"messages": reasons} if verbose else {}
    return json_response(request, {"is_compatible": not reasons, **messages})


def _find_reasons(
    state: RegistryState,
    subject: str,
    requested: SchemaDefinition,
    earlier: Sequence[SchemaValue],
    normalize: bool,
) -> list[str]:
    if not requested.schema.strip():
        raise errors.invalid_schema("Empty schema")
    config = state.effective_config(subject)
    normalize = normalize or bool(config.normalize)
    definition = canonicalize(state, subject, requested, normalize=normalize)
    schema = parse_new_definition(state, subject, definition, config)
    return find_incompatibilities(state, config, schema, definition, earlier)


ROUTES = [
    Route("/compatibility/subjects/{subject}/versions", check_against_all, methods=["POST"]),
    Route(
        "/compatibility/subjects/{subject}/versions/{version}",
        check_against_one,
        methods=["POST"],
    ),
]
