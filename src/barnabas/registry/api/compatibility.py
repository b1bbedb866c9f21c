"""/compatibility: whether a schema may follow those of a subject, without registering it."""

import asyncio
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.answering import answered
from barnabas.registry.api.asking import body_of, flag, state_of, subject_of
from barnabas.registry.compatibility import reasons_against
from barnabas.registry.documents import Definition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import SchemaValue
from barnabas.registry.schemas import canonical, parsed_as_new
from barnabas.registry.state import State
from barnabas.registry.versions import LATEST, find_version, read_version

_INVALID_SCHEMA = 42201


async def check_against_all(request: Request) -> Response:
    return await _checked(request, state_of(request).versions(subject_of(request)))


async def check_against_one(request: Request) -> Response:
    version = read_version(request.path_params["version"])
    state, subject = state_of(request), subject_of(request)
    found = find_version(state, subject, version)
    if found is None and version != LATEST:
        raise errors.version_not_found(version)
    return await _checked(request, [] if found is None else [found])


async def _checked(request: Request, earlier: Sequence[SchemaValue]) -> Response:
    state, subject = state_of(request), subject_of(request)
    given = Definition.read(await body_of(request))
    verbose, normalize = flag(request, "verbose"), flag(request, "normalize")
    try:
        # Comparing large schemas takes its time, and others want theirs.
        reasons = await asyncio.to_thread(_reasons, state, subject, given, earlier, normalize)
    except RegistryError as error:
        if error.error_code != _INVALID_SCHEMA or not verbose:
            raise
        reasons = [error.message]
    told = {"messages": reasons} if verbose else {}
    return answered(request, {"is_compatible": not reasons, **told})


def _reasons(
    state: State,
    subject: str,
    given: Definition,
    earlier: Sequence[SchemaValue],
    normalize: bool,
) -> list[str]:
    if not given.schema.strip():
        raise errors.invalid_schema("Empty schema")
    config = state.config(subject)
    normalize = normalize or bool(config.normalize)
    definition = canonical(state, subject, given, normalize=normalize)
    schema = parsed_as_new(state, subject, definition, config)
    return reasons_against(state, config, schema, definition, earlier)


ROUTES = [
    Route("/compatibility/subjects/{subject}/versions", check_against_all, methods=["POST"]),
    Route(
        "/compatibility/subjects/{subject}/versions/{version}",
        check_against_one,
        methods=["POST"],
    ),
]
