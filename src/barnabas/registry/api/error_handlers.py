"""Whatever goes wrong is told as `{"error_code": ..., "message": ...}`."""

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


async def _by_registry(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    return error_response(error.status, error.error_code, error.message)


async def _by_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    said = error.detail if error.detail != phrase else f"HTTP {error.status_code} {phrase}"
    answer = error_response(error.status_code, error.status_code, said)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = {"Allow": ", ".join(sorted(_methods_at(request)))}
        if request.method == "OPTIONS":
            return Response(headers=allowed)
        answer.headers.update(allowed)
    return answer


def _methods_at(request: Request) -> set[str]:
    """Every route has its own; what a path takes is what all that lead there do."""
    there = [each for each in request.app.routes if each.matches(request.scope)[0] is Match.PARTIAL]
    return {"OPTIONS"}.union(*(route.methods for route in there))


async def _by_form(request: Request, error: Exception) -> Response:
    return error_response(400, 400, str(error))


async def _gone(request: Request, error: Exception) -> Response:
    return error_response(400, 400, "The client hung up")  # which nobody hears


async def _unexpected(request: Request, error: Exception) -> Response:
    return error_response(
        500, 500, "Internal Server Error"
    )  # the server logs it, with its traceback


class ShutdownMiddleware:
    """Middleware that tells whoever is still asking, when the registry stops, that it does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            await error_response(503, 503, "The registry stops")(scope, receive, send)


HANDLERS = {
    RegistryError: _by_registry,
    HTTPException: _by_http,
    DocumentError: _by_form,
    ContextNameError: _by_form,
    ClientDisconnect: _gone,
    Exception: _unexpected,
}
