"""Responses, and the JSON of what several resources return."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from barnabas.connect.model import ConnectorInfo, ConnectorStatus, Status
from barnabas.connect.plugins import CONNECTOR_KINDS, plugin_named, resolve_connector

JSON = "application/json"


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(_json(content), status, headers, media_type=JSON)


def error_response(status: int, message: str) -> Response:
    return json_response({"error_code": status, "message": message}, status)


def empty_response(status: int) -> Response:
    return Response(status_code=status)


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


def connector_url(request: Request, name: str) -> str:
    return f"{str(request.base_url).rstrip('/')}/connectors/{quote(name, safe='')}"


def info_json(info: ConnectorInfo) -> dict[str, Any]:
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [{"connector": info.name, "task": task} for task in range(info.tasks)],
        "type": info.kind,
    }


def status_json(status: ConnectorStatus, version: str | None) -> dict[str, Any]:
    return {
        "name": status.name,
        "connector": _state_json(status.connector, version),
        "tasks": [
            task_status_json(task, state, version) for task, state in sorted(status.tasks.items())
        ],
        "type": status.kind,
    }


def task_status_json(task: int, status: Status, version: str | None) -> dict[str, Any]:
    return {"id": task, **_state_json(status, version)}


def _state_json(status: Status, version: str | None) -> dict[str, Any]:
    content = {"state": status.state, "worker_id": status.worker_id}
    if status.trace:
        content["trace"] = status.trace
    if version is not None:
        content["version"] = version
    return content


def connector_version(config: Mapping[str, str]) -> str | None:
    """Returns the version of the connector's class, if it is known."""
    name = config.get("connector.class", "")
    plugin = plugin_named(resolve_connector(name, config), *CONNECTOR_KINDS)
    return None if plugin is None else plugin.version
