"""Rewrites paths before routing: subjects may contain slashes, and a context may come first.

`/contexts/staging/subjects/a%2Fb` becomes `/subjects/:.staging:a%2Fb`. Segments of a path stay
percent-encoded until a handler reads them.
"""

from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from barnabas.registry.api.responses import error_response
from barnabas.registry.subjects import ContextNameError, context_prefix


class PathRewriter:
    """Middleware that rewrites a path to the form that the routes have."""

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
