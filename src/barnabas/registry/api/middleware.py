"""Middleware: rewrites paths before routing, and turns exceptions into error responses."""

import asyncio
from http import HTTPStatus
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.registry.api.responses import error_response
from barnabas.registry.definitions import DocumentError
from barnabas.registry.errors import RegistryError
from barnabas.registry.subjects import ContextNameError, context_prefix


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


class PathRewriter:
    """Rewrites a path to the form that the routes have.

    Subjects may contain slashes, and a context may come first: `/contexts/staging/subjects/a%2Fb`
    becomes `/subjects/:.staging:a%2Fb`. Segments of a path stay percent-encoded until a handler
    reads them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            encoded = scope["raw_path"].decode("latin-1").partition("?")[0]
            try:
                path, query = rewrite_path(encoded, scope["query_string"].decode("latin-1"))
            except ContextNameError as error:
                await error_response(400, 400, str(error))(scope, receive, send)
                return
            scope = {**scope, "path": path, "query_string": query.encode("latin-1")}
        await self._app(scope, receive, send)


def rewrite_path(path: str, query: str) -> tuple[str, str]:
    """Returns the path and the query string without a leading `/contexts/...`."""
    parts = [part for part in path.split("/") if part]
    if len(parts) < 3 or parts[0] != "contexts":
        return "/" + "/".join(parts), query
    prefix = context_prefix(unquote(parts[1]))
    parts = parts[2:]
    index = _subject_index(parts)
    if index is not None and index < len(parts):
        parts[index] = _qualify(prefix, unquote(parts[index]))
    elif parts[0] in ("config", "mode") and len(parts) == 1 and prefix:
        parts.append(_qualify(prefix, ""))
    elif parts[:2] == ["schemas", "ids"]:
        query = _with_context(query, "subject", prefix)
    elif len(parts) == 1 and parts[0] in ("schemas", "subjects"):
        query = _with_context(query, "subjectPrefix", prefix)
    return "/" + "/".join(parts), query


def _subject_index(parts: list[str]) -> int | None:
    if parts[0] in ("subjects", "config", "mode"):
        return 1
    if parts[:2] == ["compatibility", "subjects"]:
        return 2
    return None


def _qualify(prefix: str, subject: str) -> str:
    name = subject if subject.startswith((":.", ":*:")) else prefix + subject
    return quote(name, safe=":")


def _with_context(query: str, name: str, prefix: str) -> str:
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    value = parameters.get(name, "")
    parameters[name] = value if value.startswith((":.", ":*:")) else prefix + value
    return urlencode(parameters)
