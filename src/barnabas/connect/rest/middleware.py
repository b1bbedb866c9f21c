"""Middleware before routing, and responses to exceptions."""

from __future__ import annotations

import logging
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, ExceptionHandler, Receive, Scope, Send

from barnabas.connect.errors import ConnectError
from barnabas.connect.model import RequestFailedError
from barnabas.connect.rest.responses import JSON, error_response

log = logging.getLogger(__name__)

_READING = ("GET", "HEAD", "OPTIONS")


class PathNormalizer:
    """Keeps the segments of a path percent-encoded, because names may have slashes.

    Empty segments are removed: `/connectors/` is `/connectors`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            encoded = scope["raw_path"].decode("latin-1").partition("?")[0]
            path = "/" + "/".join(segment for segment in encoded.split("/") if segment)
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


class MediaTypes:
    """Rejects bodies that are not JSON, and requests that accept no JSON."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            status = self._error_status(Request(scope))
            if status is not None:
                await _http_error(status)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    @staticmethod
    def _error_status(request: Request) -> int | None:
        content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if request.method not in _READING and content_type not in ("", JSON):
            return 415
        return None if _accepts_json(request.headers.get("accept", "")) else 406


def _accepts_json(header: str) -> bool:
    if not header.strip():
        return True
    for media_range in header.split(","):
        name, *parameters = (part.strip().lower() for part in media_range.split(";"))
        is_json = name in (JSON, "application/*", "*/*", "*")
        if is_json and not any(_is_zero_quality(parameter) for parameter in parameters):
            return True
    return False


def _is_zero_quality(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    try:
        return name.strip() == "q" and float(value) == 0
    except ValueError:
        return False


# Exceptions


async def _on_request_failed(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestFailedError)
    return error_response(error.status, error.message)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return _http_error(error.status_code, error.detail)
    methods = _methods_at(request)
    allowed = {"Allow": ", ".join(methods)}
    if request.method == "OPTIONS":
        return Response(", ".join(methods), headers=allowed, media_type="text/plain")
    response = _http_error(405)
    response.headers.update(allowed)
    return response


def _methods_at(request: Request) -> list[str]:
    """Each route has its own methods: returns those of all routes that match the path."""
    routes = [
        route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL
    ]
    return sorted({"OPTIONS"}.union(*(route.methods for route in routes)))


def _http_error(status: int, detail: str | None = None) -> Response:
    phrase = HTTPStatus(status).phrase
    if detail is None or detail == phrase:
        detail = f"HTTP {status} {phrase}"
    return error_response(status, detail)


async def _on_connect_error(request: Request, error: Exception) -> Response:
    return error_response(500, str(error))


async def _on_timeout(request: Request, error: Exception) -> Response:
    return error_response(500, "Request timed out")


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return error_response(400, "The client hung up")  # is not received


async def _on_unexpected_error(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return error_response(500, f"{type(error).__name__}: {error}")


EXCEPTION_HANDLERS: dict[int | type[Exception], ExceptionHandler] = {
    RequestFailedError: _on_request_failed,
    ConnectError: _on_connect_error,
    HTTPException: _on_http_exception,
    TimeoutError: _on_timeout,
    ClientDisconnect: _on_disconnect,
    Exception: _on_unexpected_error,
}
