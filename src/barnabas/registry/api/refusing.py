"""Whatever goes wrong is told as `{"error_code": ..., "message": ...}`."""

import asyncio
from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.registry.api.answering import refused
from barnabas.registry.documents import DocumentError
from barnabas.registry.errors import RegistryError


async def _by_registry(request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryError)
    return refused(error.status, error.error_code, error.message)


async def _by_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = HTTPStatus(error.status_code).phrase
    said = error.detail if error.detail != phrase else f"HTTP {error.status_code} {phrase}"
    return refused(error.status_code, error.status_code, said)


async def _by_form(request: Request, error: Exception) -> Response:
    return refused(400, 400, str(error))


async def _gone(request: Request, error: Exception) -> Response:
    return refused(400, 400, "The client hung up")  # which nobody hears


async def _unexpected(request: Request, error: Exception) -> Response:
    return refused(500, 500, "Internal Server Error")  # the server logs it, with its traceback


class Stopping:
    """Middleware that tells whoever is still asking, when the registry stops, that it does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            await refused(503, 503, "The registry stops")(scope, receive, send)


HANDLERS = {
    RegistryError: _by_registry,
    HTTPException: _by_http,
    DocumentError: _by_form,
    ClientDisconnect: _gone,
    Exception: _unexpected,
}
