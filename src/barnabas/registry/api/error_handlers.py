"""Turns exceptions into responses `{"error_code": ..., "message": ...}`."""

import asyncio
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.registry.api.responses import error_response
from barnabas.registry.definitions import DocumentError
from barnabas.registry.errors import RegistryError
from barnabas.registry.subjects import ContextNameError


async def _on_registry_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    return error_response(error.status, error.error_code, error.message)


async def _on_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    message = error.detail if error.detail != phrase else f"HTTP {error.status_code} {phrase}"
    response = error_response(error.status_code, error.status_code, message)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = {"Allow": ", ".join(sorted(_methods_at(request)))}
        if request.method == "OPTIONS":
            return Response(headers=allowed)
        response.headers.update(allowed)
    return response


def _methods_at(request: Request) -> set[str]:
    """Each route has its own methods: returns those of all routes that match the path."""
    routes = [
        route for route in request.app.routes if route.matches(request.scope)[0] is Match.PARTIAL
    ]
    return {"OPTIONS"}.union(*(route.methods for route in routes))


async def _on_invalid_document(request: Request, error: Exception) -> Response:
    return error_response(400, 400, str(error))


async def _on_disconnect(request: Request, error: Exception) -> Response:
    return error_response(400, 400, "The client hung up")  # is not received


async def _on_unexpected_error(request: Request, error: Exception) -> Response:
    return error_response(
        500, 500, "Internal Server Error"
    )  # the server logs it, with its traceback


class ShutdownMiddleware:
    """Middleware that responds to the requests which a stop of the registry cancels."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            await error_response(503, 503, "The registry stops")(scope, receive, send)


HANDLERS = {
    RegistryError: _on_registry_error,
    HTTPException: _on_http_exception,
    DocumentError: _on_invalid_document,
    ContextNameError: _on_invalid_document,
    ClientDisconnect: _on_disconnect,
    Exception: _on_unexpected_error,
}
