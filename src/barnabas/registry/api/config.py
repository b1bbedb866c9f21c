"""/config: the global config, and those of contexts and subjects."""

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
)
from barnabas.registry.api.responses import json_response
from barnabas.registry.commands import set_config
from barnabas.registry.config import DEFAULT_LEVEL, SubjectConfig
from barnabas.registry.subjects import GLOBAL_SCOPE


async def get_config(request: Request) -> Response:
    scope, state = scope_of(request), state_of(request)
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
    command = set_config.ChangeConfig(scope_to_change(request), await read_body(request))
    config = (await instance_of(request).write(set_config.decide_change, command)).to_json()
    renamed = {"compatibilityLevel": "compatibility"}  # as in requests
    return json_response(
        request, {renamed.get(name, name): value for name, value in config.items()}
    )


@handled_by_leader
async def remove_config(request: Request) -> Response:
    command = set_config.RemoveConfig(scope_of(request))
    config = await instance_of(request).write(set_config.decide_removal, command)
    return json_response(request, config.to_json())


ROUTES = [
    Route(path, handler, methods=[method])
    for path in ("/config", "/config/{subject}")
    for method, handler in (("GET", get_config), ("PUT", change_config), ("DELETE", remove_config))
]
