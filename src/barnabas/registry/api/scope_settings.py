"""/config and /mode: the global config and mode, and those of contexts and subjects."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.access import AclOperation, require, require_scope
from barnabas.registry.api.forwarding import handled_by_leader
from barnabas.registry.api.request_parsing import (
    instance_of,
    query_flag,
    read_body,
    scope_of,
    scope_to_change,
    state_of,
    text_field,
)
from barnabas.registry.api.responses import json_response
from barnabas.registry.commands import scope_settings
from barnabas.registry.config import DEFAULT_LEVEL, SubjectConfig
from barnabas.registry.records import RegistryMode
from barnabas.registry.subjects import GLOBAL_SCOPE, QualifiedSubject


async def get_config(request: Request) -> Response:
    scope, state = await _readable_scope(request), state_of(request)
    if query_flag(request, "defaultToGlobal"):
        return json_response(request, state.effective_config(scope).to_json())
    default = SubjectConfig(compatibility_level=DEFAULT_LEVEL)
    config = state.configs.get(scope)
    if config is None and scope not in (None, GLOBAL_SCOPE):
        raise errors.config_not_found(scope)
    return json_response(
        request, default.to_json() if config is None else config.merged_over(default).to_json()
    )


@handled_by_leader
async def change_config(request: Request) -> Response:
    scope = scope_to_change(request)
    await require_scope(request, scope)
    command = scope_settings.ChangeConfig(scope, await read_body(request))
    config = (
        await instance_of(request).write(scope_settings.decide_config_change, command)
    ).to_json()
    renamed = {"compatibilityLevel": "compatibility"}  # as in requests
    return json_response(
        request, {renamed.get(name, name): value for name, value in config.items()}
    )


@handled_by_leader
async def remove_config(request: Request) -> Response:
    scope = scope_of(request)
    await require_scope(request, scope)
    command = scope_settings.RemoveConfig(scope)
    config = await instance_of(request).write(scope_settings.decide_config_removal, command)
    return json_response(request, config.to_json())


async def get_mode(request: Request) -> Response:
    scope, state = await _readable_scope(request), state_of(request)
    if query_flag(request, "defaultToGlobal"):
        return json_response(request, {"mode": state.effective_mode(scope)})
    mode = state.modes.get(scope)
    if mode is None and scope not in (None, GLOBAL_SCOPE):
        raise errors.mode_not_found(scope)
    return json_response(request, {"mode": mode or RegistryMode.READWRITE})


@handled_by_leader
async def change_mode(request: Request) -> Response:
    scope = scope_to_change(request)
    await require_scope(request, scope)
    _require_mutable(request)
    name = text_field(await read_body(request), "mode")
    try:
        mode = None if name is None else RegistryMode(name.upper())
    except ValueError:
        raise errors.invalid_mode() from None
    command = scope_settings.SetMode(scope, mode, force=query_flag(request, "force"))
    return json_response(
        request,
        {"mode": await instance_of(request).write(scope_settings.decide_mode_change, command)},
    )


@handled_by_leader
async def remove_mode(request: Request) -> Response:
    scope = scope_of(request)
    await require_scope(request, scope)
    _require_mutable(request)
    command = scope_settings.RemoveMode(scope, recursive=query_flag(request, "recursive"))
    mode = await instance_of(request).write(scope_settings.decide_mode_removal, command)
    return json_response(request, {} if mode is None else {"mode": mode})


async def _readable_scope(request: Request) -> str | None:
    """Returns the scope in the path. All clients may read what applies to more than a subject."""
    scope = scope_of(request)
    if scope is not None and QualifiedSubject.parse(scope).name:
        await require(request, AclOperation.DESCRIBE, scope)
    return scope


def _require_mutable(request: Request) -> None:
    if not instance_of(request).settings.mode_mutability:
        raise errors.not_permitted("Mode changes are not allowed")


ROUTES = [
    Route(path, handler, methods=[method])
    for resource, get, change, remove in (
        ("/config", get_config, change_config, remove_config),
        ("/mode", get_mode, change_mode, remove_mode),
    )
    for path in (resource, f"{resource}/{{subject}}")
    for method, handler in (("GET", get), ("PUT", change), ("DELETE", remove))
]
