"""/connectors: creates, lists, changes and deletes connectors."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect.model import Herder, RequestFailedError, TargetState
from barnabas.connect.rest.forwarding import calls_herder
from barnabas.connect.rest.requests import (
    InvalidBodyError,
    herder_of,
    json_type,
    path_text,
    read_object,
    read_settings,
    settings_of,
)
from barnabas.connect.rest.responses import (
    connector_url,
    connector_version,
    empty_response,
    info_json,
    json_response,
    status_json,
)

_INITIAL_STATES: Final = {
    "RUNNING": TargetState.STARTED,
    "PAUSED": TargetState.PAUSED,
    "STOPPED": TargetState.STOPPED,
}
_CREATE_FIELDS: Final = ("config", "initial_state", "name")


@calls_herder
async def list_connectors(request: Request) -> Response:
    herder = herder_of(request)
    names = await herder.connectors()
    if "expand" not in request.query_params:
        return json_response(names)
    expansions = request.query_params.getlist("expand")
    content: dict[str, Any] = {}
    for name in names:
        try:
            content[name] = await _expanded(herder, name, expansions)
        except RequestFailedError as error:
            if error.status != HTTPStatus.NOT_FOUND:  # or it was deleted in the meantime
                raise
    return json_response(content)


async def _expanded(herder: Herder, name: str, expansions: list[str]) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for expansion in expansions:
        if expansion == "status":
            version = await version_of(herder, name)
            content["status"] = status_json(await herder.connector_status(name), version)
        elif expansion == "info":
            content["info"] = info_json(await herder.connector_info(name))
    return content


async def version_of(herder: Herder, name: str) -> str | None:
    """Returns the version of the connector's class; None if the connector is being deleted."""
    try:
        return connector_version(await herder.connector_config(name))
    except RequestFailedError:
        return None


@calls_herder
async def create_connector(request: Request) -> Response:
    body = await read_object(request, numbers_as_text=True)
    for field in body:
        if field not in _CREATE_FIELDS:
            raise InvalidBodyError(
                f'Unrecognized field "{field}": known are {", ".join(_CREATE_FIELDS)}'
            )
    name = _name_of(body).strip()
    config = body.get("config")
    if not isinstance(config, dict):
        raise InvalidBodyError(f"config has to be an object, not {json_type(config)}")
    _, info = await herder_of(request).put_config(
        name,
        with_name(settings_of(config, "config."), name),
        may_exist=False,
        initial_state=_initial_state_of(body),
    )
    return json_response(info_json(info), 201, {"Location": connector_url(request, name)})


def _name_of(body: Mapping[str, Any]) -> str:
    name = body.get("name")
    if name is None:
        return ""
    if not isinstance(name, str):
        raise InvalidBodyError(f"name has to be a string, not {json_type(name)}")
    return name


def _initial_state_of(body: Mapping[str, Any]) -> TargetState | None:
    text = body.get("initial_state")
    if text is None:
        return None
    state = _INITIAL_STATES.get(text.upper()) if isinstance(text, str) else None
    if state is None:
        raise InvalidBodyError(
            f"initial_state has to be one of {', '.join(_INITIAL_STATES)}, not {text}"
        )
    return state


def with_name(settings: dict[str, str | None], name: str) -> dict[str, str]:
    """Adds the name to settings that have none. Raises RequestFailed 400 if they have another.

    Settings may have null values, which the validation rejects.
    """
    given = settings.get("name")
    if given is None:
        settings["name"] = name
    elif given != name:
        raise RequestFailedError(
            400,
            f"Connector name configuration ({given}) doesn't match connector name in the URL "
            f"({name})",
        )
    return settings  # type: ignore[return-value]


@calls_herder
async def get_connector(request: Request) -> Response:
    info = await herder_of(request).connector_info(path_text(request, "connector"))
    return json_response(info_json(info))


@calls_herder
async def delete_connector(request: Request) -> Response:
    await herder_of(request).delete(path_text(request, "connector"))
    return empty_response(204)


@calls_herder
async def get_config(request: Request) -> Response:
    config = await herder_of(request).connector_config(path_text(request, "connector"))
    return json_response(dict(config))


@calls_herder
async def put_config(request: Request) -> Response:
    name = path_text(request, "connector")
    config = with_name(await read_settings(request), name)
    is_new, info = await herder_of(request).put_config(name, config, may_exist=True)
    if is_new:
        return json_response(info_json(info), 201, {"Location": connector_url(request, name)})
    return json_response(info_json(info))


@calls_herder
async def patch_config(request: Request) -> Response:
    changes = await read_settings(request)
    info = await herder_of(request).patch_config(path_text(request, "connector"), changes)
    return json_response(info_json(info))


ROUTES = [
    Route("/connectors", list_connectors, methods=["GET"]),
    Route("/connectors", create_connector, methods=["POST"]),
    Route("/connectors/{connector}", get_connector, methods=["GET"]),
    Route("/connectors/{connector}", delete_connector, methods=["DELETE"]),
    Route("/connectors/{connector}/config", get_config, methods=["GET"]),
    Route("/connectors/{connector}/config", put_config, methods=["PUT"]),
    Route("/connectors/{connector}/config", patch_config, methods=["PATCH"]),
]
