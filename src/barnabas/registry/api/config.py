"""/config: what holds for all, for a context or for a subject."""

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
)
from barnabas.registry.api.forwarding import by_the_writer
from barnabas.registry.commands import configure
from barnabas.registry.config import DEFAULT_LEVEL, Config
from barnabas.registry.naming import GLOBAL_SCOPE


async def get_config(request: Request) -> Response:
    scope, state = scope_of(request), state_of(request)
    if flag(request, "defaultToGlobal"):
        return answered(request, state.config(scope).json())
    default = Config(compatibility_level=DEFAULT_LEVEL)
    found = state.configs.get(scope)
    if found is None and scope not in (None, GLOBAL_SCOPE):
        raise errors.config_not_found(scope)
    return answered(request, default.json() if found is None else found.over(default).json())


@by_the_writer
async def change_config(request: Request) -> Response:
    command = configure.ChangeConfig(scope_to_change(request), await body_of(request))
    config = (await instance_of(request).write(configure.decide_change, command)).json()
    named = {"compatibilityLevel": "compatibility"}  # as requests have it
    return answered(request, {named.get(name, name): value for name, value in config.items()})


@by_the_writer
async def remove_config(request: Request) -> Response:
    command = configure.RemoveConfig(scope_of(request))
    config = await instance_of(request).write(configure.decide_removal, command)
    return answered(request, config.json())


ROUTES = [
    Route(path, handler, methods=[method])
    for path in ("/config", "/config/{subject}")
    for method, handler in (("GET", get_config), ("PUT", change_config), ("DELETE", remove_config))
]
