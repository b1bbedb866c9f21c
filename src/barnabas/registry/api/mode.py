"""/mode: the global mode, and those of contexts and subjects."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
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
from barnabas.registry.commands import set_mode
from barnabas.registry.records import RegistryMode
from barnabas.registry.subjects import GLOBAL_SCOPE


async def get_mode(request: Request) -> Response:
    scope, state = scope_of(request), state_of(request)
    if query_flag(request, "defaultToGlobal"):
        return json_response(request, {"mode": state.effective_mode(scope)})
    mode = state.modes.get(scope)
    if mode is None and scope not in (None, GLOBAL_SCOPE):
        raise errors.mode_not_found(scope)
    return json_response(request, {"mode": mode or RegistryMode.READWRITE})


@handled_by_leader
async def change_mode(request: Request) -> Response:
    _require_mutable(request)
    name = text_field(await read_body(request), "mode")
    try:
        mode = None if name is None else RegistryMode(name.upper())
    except ValueError:
        raise errors.invalid_mode() from None
    command = set_mode.SetMode(scope_to_change(request), mode, force=query_flag(request, "force"))
    return json_response(
        request, {"mode": await instance_of(request).write(set_mode.decide_change, command)}
    )


@handled_by_leader
async def remove_mode(request: Request) -> Response:
    _require_mutable(request)
    command = set_mode.RemoveMode(scope_of(request), recursive=query_flag(request, "recursive"))
    mode = await instance_of(request).write(set_mode.decide_removal, command)
    return json_response(request, {} if mode is None else {"mode": mode})


def _require_mutable(request: Request) -> None:
    if not instance_of(request).settings.mode_mutability:
        raise errors.not_permitted("Mode changes are not allowed")


ROUTES = [
    Route(path, handler, methods=[method])
    for path in ("/mode", "/mode/{subject}")
    for method, handler in (("GET", get_mode), ("PUT", change_mode), ("DELETE", remove_mode))
]
