"""/connector-plugins: what is installed, the settings of each, and their validation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect.model import RequestFailedError
from barnabas.connect.plugins import CONNECTOR_KINDS, Plugin, all_plugins
from barnabas.connect.rest.forwarding import calls_herder
from barnabas.connect.rest.requests import path_text, query_flag, read_settings, worker_of
from barnabas.connect.rest.responses import json_response
from barnabas.connect.validated_config import ValidatedConfig, definition_json
from barnabas.connect.validation import plugin_settings, resolve, validate

_SUFFIX = "Connector"


async def list_plugins(request: Request) -> Response:
    kinds = CONNECTOR_KINDS if query_flag(request, "connectorsOnly", default=True) else ()
    return json_response([_plugin_json(plugin) for plugin in all_plugins(*kinds)])


def _plugin_json(plugin: Plugin) -> dict[str, Any]:
    content = {"class": plugin.name, "type": plugin.kind}
    return content if plugin.version is None else {**content, "version": plugin.version}


@calls_herder
async def get_plugin_config(request: Request) -> Response:
    settings = await asyncio.to_thread(plugin_settings, path_text(request, "plugin"))
    return json_response([definition_json(each) for each in settings])


@calls_herder
async def validate_config(request: Request) -> Response:
    """Validates in a thread, because a connector may try to connect to its target."""
    plugin = path_text(request, "plugin")
    config = await read_settings(request)
    included = config.get("connector.class")
    if included is not None and not _short_name(included).endswith(_short_name(plugin)):
        raise RequestFailedError(
            400, f"Included connector type {included} does not match request type {plugin}"
        )
    validated = await asyncio.to_thread(_validate, config, worker_of(request))
    return json_response(validated.to_json())


def _validate(config: Mapping[str, str | None], worker: Mapping[str, str]) -> ValidatedConfig:
    return validate(resolve(config, worker), worker)


def _short_name(name: str) -> str:
    return name.removesuffix(_SUFFIX) or name


ROUTES = [
    Route("/connector-plugins", list_plugins, methods=["GET"]),
    Route("/connector-plugins/{plugin}/config", get_plugin_config, methods=["GET"]),
    Route("/connector-plugins/{plugin}/config/validate", validate_config, methods=["PUT"]),
]
