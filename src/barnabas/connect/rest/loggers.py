"""/admin/loggers: the levels of loggers, of this instance or of all."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.connect import log_levels
from barnabas.connect.log_levels import LoggerLevel
from barnabas.connect.model import RequestFailedError
from barnabas.connect.rest.forwarding import calls_herder
from barnabas.connect.rest.requests import herder_of, path_text, read_settings
from barnabas.connect.rest.responses import empty_response, json_response


async def list_loggers(request: Request) -> Response:
    levels = log_levels.logger_levels()
    return json_response({name: _level_json(level) for name, level in levels.items()})


async def get_logger(request: Request) -> Response:
    name = path_text(request, "logger")
    level = log_levels.logger_level(name)
    if level is None:
        raise RequestFailedError(404, f"Logger {name} not found.")
    return json_response(_level_json(level))


def _level_json(level: LoggerLevel) -> dict[str, str | int | None]:
    return {"level": level.level, "last_modified": level.last_modified_ms}


@calls_herder
async def set_logger(request: Request) -> Response:
    """Connect takes an unknown scope for `worker`."""
    name = path_text(request, "logger")
    level = (await read_settings(request)).get("level")
    if level is None:
        raise RequestFailedError(400, "Desired 'level' parameter was not specified in request.")
    if not log_levels.is_level(level):
        raise RequestFailedError(404, f"invalid log level '{level}'.")
    if request.query_params.get("scope", "worker").lower() != "cluster":
        return json_response(log_levels.set_logger_level(name, level))
    await herder_of(request).set_logger_level(name, level.upper())
    return empty_response(204)


ROUTES = [
    Route("/admin/loggers", list_loggers, methods=["GET"]),
    Route("/admin/loggers/{logger}", get_logger, methods=["GET"]),
    Route("/admin/loggers/{logger}", set_logger, methods=["PUT"]),
]
