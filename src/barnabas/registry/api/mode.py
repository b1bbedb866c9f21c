"""/mode: whether all, a context or a subject can be written, and how."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.registry import errors
from barnabas.registry.api.answering import answered
from barnabas.registry.api.asking import (
    body_of,
    flag,
    instance_of,
    scope_of,
    scope_to_change,
    state_of,
    text_field,
)
from barnabas.registry.api.forwarding import by_the_writer
from barnabas.registry.commands import set_mode
from barnabas.registry.naming import GLOBAL_SCOPE
from barnabas.registry.records import Mode


async def get_mode(request: Request) -> Response:
    scope, state = scope_of(request), state_of(request)
    if flag(request, "defaultToGlobal"):
        return answered(request, {"mode": state.mode(scope)})
    found = state.modes.get(scope)
    if found is None and scope not in (None, GLOBAL_SCOPE):
        raise errors.mode_not_found(scope)
    return answered(request, {"mode": found or Mode.READWRITE})


@by_the_writer
async def change_mode(request: Request) -> Response:
    _require_mutability(request)
    name = text_field(await body_of(request), "mode")
    try:
        mode = None if name is None else Mode(name.upper())
    except ValueError:
        raise errors.invalid_mode() from None
    command = set_mode.SetMode(scope_to_change(request), mode, force=flag(request, "force"))
    return answered(
        request, {"mode": await instance_of(request).write(set_mode.decide_change, command)}
    )


@by_the_writer
async def remove_mode(request: Request) -> Response:
    _require_mutability(request)
    command = set_mode.RemoveMode(scope_of(request), recursive=flag(request, "recursive"))
    mode = await instance_of(request).write(set_mode.decide_removal, command)
    return answered(request, {} if mode is None else {"mode": mode})


def _require_mutability(request: Request) -> None:
    if not instance_of(request).settings.mode_mutability:
        raise errors.not_permitted("Mode changes are not allowed")


ROUTES = [
    Route(path, handler, methods=[method])
    for path in ("/mode", "/mode/{subject}")
    for method, handler in (("GET", get_mode), ("PUT", change_mode), ("DELETE", remove_mode))
]
